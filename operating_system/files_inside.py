"""Files inside a folder, reached from its descriptor: no link on the way leads elsewhere. Where a
system has no such calls, the path is compared with where it leads. Standard library only."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from operating_system.files import replace_file

_HELD = os.open in os.supports_dir_fd
"""Whether a folder is held while names in it are used."""
_OPEN = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
"""No link is followed, and no pipe waited for."""


class _Place(NamedTuple):
    """A name in a folder that is held, or a whole path where none can be."""

    name: str
    folder: int | None

    def beside(self) -> _Place:
        """Return a new name in the same folder."""
        head, tail = os.path.split(self.name)
        return self._replace(name=os.path.join(head, f".{tail}.{secrets.token_hex(6)}.new"))

    def exists(self) -> bool:
        try:
            os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def open(self, flags: int, mode: int = 0o600) -> int:
        return os.open(self.name, flags | _OPEN, mode, dir_fd=self.folder)

    def remove(self) -> None:
        os.unlink(self.name, dir_fd=self.folder)


@contextmanager
def _place(root: Path, path: str, makes: bool = False) -> Iterator[_Place]:
    """Open the folder of ``path``, with slashes, below ``root``; ``makes`` it where there is none.
    Raises OSError behind a link."""
    if not _HELD:
        target = root / path
        if makes:
            target.parent.mkdir(parents=True, exist_ok=True)
        if target.resolve() != target:
            raise OSError(f"{path} is behind a link")
        yield _Place(str(target), None)
        return
    *folders, name = path.split("/")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in folders:
            if makes:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _OPEN, dir_fd=folder)
            os.close(folder)
            folder = below
        yield _Place(name, folder)
    finally:
        os.close(folder)


def open_inside(root: Path, path: str) -> int:
    """Return a descriptor for reading a file of any kind. Raises OSError."""
    with _place(root, path) as opened_place:
        return opened_place.open(os.O_RDONLY)


class FileInside(NamedTuple):
    """A regular file as it was read; without a status it is to be made."""

    data: bytes
    status: os.stat_result | None


def read_inside(root: Path, path: str, limit: int) -> FileInside:
    """Return a regular file with the first ``limit`` bytes of it. Raises OSError for anything
    else."""
    with _place(root, path) as opened_place:
        return _read(opened_place, path, limit)


def _read(location: _Place, path: str, limit: int) -> FileInside:
    descriptor = location.open(os.O_RDONLY)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        return FileInside(file.read(limit), status)


class FileChanged(OSError):
    """A file is not what it was when it was read."""


class Replacement:
    """New content of a file, which lies beside it until it takes its place. The folder is held."""

    def __init__(self, root: Path, path: str, expected: FileInside, content: bytes) -> None:
        """``expected``: the whole file as it was read. Raises OSError; nothing is left behind
        then."""
        self._path, self._known = path, expected
        self._held = _place(root, path, makes=expected.status is None)
        self._place = self._held.__enter__()
        try:
            self._new = self._written(content)
        except BaseException:
            self._held.__exit__(None, None, None)
            raise

    def _written(self, content: bytes) -> _Place:
        """Return a file beside the old one, with its mode, whose content is on the disk."""
        new, status = self._place.beside(), self._known.status
        descriptor = new.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if status else 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(descriptor)
                if status and hasattr(os, "fchmod"):
                    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
        except BaseException:
            new.remove()
            raise
        return new

    def check(self) -> None:
        """Raise FileChanged where the file is another one than was read, or OSError."""
        before = self._known.status
        if before is None:
            is_changed = self._place.exists()
        else:
            now = _read(self._place, self._path, len(self._known.data) + 1)
            inode = now.status and now.status.st_ino
            is_changed = now.data != self._known.data or inode != before.st_ino
        if is_changed:
            raise FileChanged(f"{self._path} changed meanwhile")

    def commit(self) -> None:
        """The new content takes the file's place in one step. Raises OSError."""
        replace_file(self._new.name, self._place.name, self._place.folder)

    def undo(self) -> None:
        """The old content is the file's again, after ``commit``, or none. Raises OSError."""
        if self._known.status is None:
            self._place.remove()
            return
        old = self._written(self._known.data)
        replace_file(old.name, self._place.name, self._place.folder)

    def close(self) -> None:
        """Let go of the folder, and remove what was not committed."""
        with contextlib.suppress(OSError):
            self._new.remove()
        self._held.__exit__(None, None, None)
