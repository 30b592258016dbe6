"""Writes files that only their user may read and that are never half-written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_private(file: Path, content: str | bytes) -> None:
    """Have a file hold this, a text as UTF-8, with mode 0600. Its folder is made where there is
    none. Raises OSError; the file is as it was then."""
    data = content.encode() if isinstance(content, str) else content
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(".new", f"{file.name}.", file.parent)
    try:
        with open(descriptor, "wb") as out:
            out.write(data)
        os.replace(unfinished, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise
