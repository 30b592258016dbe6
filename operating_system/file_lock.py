"""A lock between processes that the system lets go of when its holder dies. Standard library only:
``redraft serve``, which has to start quickly, takes one."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path


class LockFile:
    """An exclusive lock. Its file stays, unless ``remove`` takes it away."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self, wait_s: float = 0.0) -> bool:
        """Take the lock, waiting at most ``wait_s`` for its holder, and return True if it was
        taken. A folder that is gone is made again. Raises OSError where the file cannot be made."""
        deadline = time.monotonic() + wait_s
        while True:
            descriptor = self._open()
            # A file that was removed meanwhile is the lock of no other process.
            if _locked(descriptor) and self._is_there(descriptor):
                self._descriptor = descriptor
                return True
            os.close(descriptor)
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.005)

    def remove(self) -> None:
        """Let the lock go, and take its file away where the system allows that."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        self.release()

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        try:
            return os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self._path, flags, 0o600)

    def _is_there(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self._path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let the lock go."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        try:
            if sys.platform == "win32":
                import msvcrt

                # Windows may take its time over what a closed file held.
                msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
        finally:
            os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
