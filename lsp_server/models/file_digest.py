"""The SHA-256 of a file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path


def sha256_of(file: Path, on_bytes: Callable[[int], None] = lambda _: None) -> str:
    """Return hexadecimal digits of ``file``, telling ``on_bytes`` bytes read. Raises OSError."""
    digest, count = hashlib.sha256(), 0
    with file.open("rb") as opened:
        while piece := opened.read(1 << 20):
            digest.update(piece)
            count += len(piece)
            on_bytes(count)
    return digest.hexdigest()
