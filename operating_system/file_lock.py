"""A lock between processes that the system lets go of when its holder dies. Standard library only:
``redraft serve``, which has to start quickly, takes one."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


class LockFile:
    """An exclusive lock. The file stays."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self, wait_s: float = 0.0) -> bool:
        """Take the lock, waiting at most ``wait_s`` for its holder; whether it was taken. Raises
        OSError where the file cannot be made."""
        deadline = time.monotonic() + wait_s
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(self._path, flags, 0o600)
        while not _locked(descriptor):
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return False
            time.sleep(0.005)
        self._descriptor = descriptor
        return True

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
