"""The SHA-256 of a file."""

from __future__ import annotations

import hashlib
from pathlib import Path

_PIECE = 1 << 20


def sha256_of(file: Path) -> str:
    """In hexadecimal digits. Raises OSError."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while part := opened.read(_PIECE):
            digest.update(part)
    return digest.hexdigest()
