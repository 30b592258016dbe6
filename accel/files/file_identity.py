"""Identity of a model's file, from parts of its contents."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

_BEGINNING = 1 << 16
"""Bytes of a file's beginning, where its header is."""
_BLOCKS, _BLOCK = 64, 1 << 12
"""The number of blocks of a file that are read, evenly spread up to its end, and their bytes."""


def identity_of(path: Path) -> str:
    """Return names a file as it is now, by device, inode, times and samples of what it holds:
    another file, or this one once it changes, has another name. Raises OSError."""
    stat = path.stat()
    state = stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
    return _identity(path, state)


@lru_cache(maxsize=256)
def _identity(path: Path, state: tuple[int, ...]) -> str:
    with path.open("rb") as stream:
        return hashlib.sha256(f"{state} {sample(stream)}".encode()).hexdigest()


def sample(stream: BinaryIO) -> str:
    """Return a hash of a file's size, of its beginning and of blocks of it. Equal files have equal
    ones; different files may, too."""
    size = os.fstat(stream.fileno()).st_size
    digest = hashlib.sha256(f"{size} ".encode())
    stream.seek(0)
    digest.update(stream.read(_BEGINNING))
    last = max(size - _BLOCK, 0)
    for number in range(1, _BLOCKS + 1):
        stream.seek(last * number // _BLOCKS)
        digest.update(stream.read(_BLOCK))
    return digest.hexdigest()
