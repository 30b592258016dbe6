"""Every write of the index goes through here, so that tests can break any one of them."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from operating_system.files import replace_file, sync_folder

CHUNK = 1 << 22


class FileLayer:
    """Files of a store. A file appears under its name whole, or not at all."""

    def replace_with(self, path: Path, pieces: Iterable[bytes | memoryview]) -> tuple[int, int]:
        """Write a new file, synced, and give it the name ``path`` at once; returns its size and
        CRC-32. The temporary file is removed when anything fails; raises OSError."""
        handle, name = self.open_temporary(path)
        try:
            written = self._write(handle, pieces)
            self.replace(name, path)
        except BaseException:
            self.remove(name)
            raise
        return written

    def create(self, path: Path, pieces: Iterable[bytes | memoryview]) -> tuple[int, int]:
        """Write a file of a new name, synced, which nothing refers to yet; returns its size and
        CRC-32. Removed when anything fails; raises OSError."""
        handle = self.open_new(path)
        try:
            return self._write(handle, pieces)
        except BaseException:
            self.remove(path)
            raise

    def _write(self, handle: BinaryIO, pieces: Iterable[bytes | memoryview]) -> tuple[int, int]:
        size = crc = 0
        with handle:
            for piece in pieces:
                view = memoryview(piece).cast("B")
                for start in range(0, len(view), CHUNK):
                    chunk = view[start : start + CHUNK]
                    self.append(handle, chunk)
                    crc = zlib.crc32(chunk, crc)
                    size += len(chunk)
            self.sync(handle)
        return size, crc

    def open_new(self, path: Path) -> BinaryIO:
        """Return a new empty file, private to the user. Raises OSError when there is one
        already."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        return os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)

    def open_temporary(self, path: Path) -> tuple[BinaryIO, Path]:
        """Return a new empty file in the folder of ``path``, private to the user."""
        descriptor, name = tempfile.mkstemp(suffix=".tmp", prefix=path.name, dir=path.parent)
        return os.fdopen(descriptor, "wb", buffering=0), Path(name)

    def append(self, handle: BinaryIO, data: memoryview) -> None:
        """Write all of ``data``."""
        while data:
            data = data[handle.write(data) or 0 :]

    def sync(self, handle: BinaryIO) -> None:
        """Return when what was written is on the disk."""
        os.fsync(handle.fileno())

    def replace(self, source: Path, target: Path) -> None:
        """Give ``source`` the name ``target`` in one step."""
        replace_file(source, target)

    def remove(self, path: Path) -> None:
        """Remove a file if it is there and may be removed (Windows keeps mapped files)."""
        try:
            path.unlink(missing_ok=True)
        except OSError:
            return

    def sync_folder(self, folder: Path) -> None:
        """Return when the names in ``folder`` are on the disk, where the system can say so."""
        sync_folder(folder)

    def make_folder(self, folder: Path) -> None:
        """Make ``folder`` and its parents, private to the user."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def checksum(path: Path) -> tuple[int, int]:
    """Size and CRC-32 of a file, read in chunks: nothing stays mapped or in memory."""
    size = crc = 0
    with path.open("rb", buffering=0) as file:
        buffer = bytearray(CHUNK)
        view = memoryview(buffer)
        while count := file.readinto(buffer):
            crc = zlib.crc32(view[:count], crc)
            size += count
    return size, crc
