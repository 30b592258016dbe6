"""File layers that fail: a process that dies between two writes, a disk that is full."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path
from typing import BinaryIO

from repo_index.file_layer import FileLayer


class Died(BaseException):
    """The process ends here."""


class DyingFiles(FileLayer):
    """Dies at the ``last``-th operation; ``lose_power`` then undoes what was not synced.

    What was written since the last sync of a file may be kept, dropped or garbled, write by write;
    names given or removed since the last sync of the folder may be as before, the latest first.
    The name of a file made and synced is kept with it.
    """

    def __init__(self, last: int) -> None:
        self.left = last
        self.unsynced: dict[int, list[tuple[int, int]]] = {}
        self.paths: dict[int, Path] = {}
        self.names: list[tuple[str, Path, Path, bytes | None]] = []
        self.new: dict[Path, bool] = {}

    def step(self) -> None:
        if self.left <= 0:
            raise Died
        self.left -= 1

    def open_temporary(self, path: Path) -> tuple[BinaryIO, Path]:
        self.step()
        handle, name = super().open_temporary(path)
        self.paths[handle.fileno()] = name
        self.unsynced[handle.fileno()] = []
        self.new[name] = False
        return handle, name

    def open_new(self, path: Path) -> BinaryIO:
        self.step()
        handle = super().open_new(path)
        self.paths[handle.fileno()] = path
        self.unsynced[handle.fileno()] = []
        self.new[path] = False
        return handle

    def append(self, handle: BinaryIO, data: memoryview) -> None:
        self.step()
        start = handle.tell()
        super().append(handle, data)
        self.unsynced[handle.fileno()].append((start, len(data)))
        self.paths[handle.fileno()] = Path(self.paths[handle.fileno()])

    def sync(self, handle: BinaryIO) -> None:
        self.step()
        super().sync(handle)
        self.unsynced[handle.fileno()] = []
        self.new[self.paths[handle.fileno()]] = True

    def replace(self, source: Path, target: Path) -> None:
        self.step()
        former = target.read_bytes() if target.exists() else None
        super().replace(source, target)
        self.names.append(("replace", source, target, former))

    def remove(self, path: Path) -> None:
        if self.left <= 0:
            return
        self.left -= 1
        former = path.read_bytes() if path.exists() else None
        super().remove(path)
        self.names.append(("remove", path, path, former))

    def sync_folder(self, folder: Path) -> None:
        self.step()
        super().sync_folder(folder)
        self.names.clear()

    def lose_power(self, generator: random.Random) -> None:
        for descriptor, writes in self.unsynced.items():
            path = self.paths[descriptor]
            if not path.exists():
                continue
            data = bytearray(path.read_bytes())
            for start, length in writes:
                fate = generator.choice(["keep", "drop", "garble", "cut"])
                if fate == "drop":
                    data[start : start + length] = bytes(max(0, min(length, len(data) - start)))
                elif fate == "garble":
                    data[start : start + length] = generator.randbytes(
                        max(0, min(length, len(data) - start))
                    )
                elif fate == "cut":
                    del data[start:]
            path.write_bytes(bytes(data))
        for path, synced in self.new.items():
            if not synced and generator.random() < 0.5:
                path.unlink(missing_ok=True)
        for _ in range(generator.randint(0, len(self.names))):
            kind, source, target, former = self.names.pop()
            if kind == "replace":
                os.replace(target, source)
            if former is not None:
                target.write_bytes(former)


class FullDisk(FileLayer):
    """The ``last``-th operation that needs the disk fails; with ENOSPC all later ones too."""

    def __init__(self, last: int, code: int = errno.ENOSPC) -> None:
        self.left = last
        self.code = code
        self.failed = False

    def step(self) -> None:
        if self.left == 0 or (self.failed and self.code == errno.ENOSPC):
            self.failed = True
            self.left = -1
            raise OSError(self.code, os.strerror(self.code))
        self.left -= 1

    def mend(self) -> None:
        self.left, self.failed = 1 << 60, False

    def open_temporary(self, path: Path) -> tuple[BinaryIO, Path]:
        self.step()
        return super().open_temporary(path)

    def open_new(self, path: Path) -> BinaryIO:
        self.step()
        return super().open_new(path)

    def append(self, handle: BinaryIO, data: memoryview) -> None:
        if self.left == 0 and len(data) > 1:
            super().append(handle, data[: len(data) // 2])
        self.step()
        super().append(handle, data)

    def sync(self, handle: BinaryIO) -> None:
        self.step()
        super().sync(handle)

    def replace(self, source: Path, target: Path) -> None:
        self.step()
        super().replace(source, target)

    def sync_folder(self, folder: Path) -> None:
        self.step()
        super().sync_folder(folder)
