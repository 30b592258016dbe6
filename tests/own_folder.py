"""Temporary folders of tests: what a run that was killed left of them, the next run removes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from operating_system.file_lock import LockFile

IN_USE = ".in-use"
"""The file in such a folder that its process holds a lock on."""


@contextmanager
def own_folder(kind: str) -> Iterator[Path]:
    """A new folder for ``kind``, removed at the end."""
    remove_left(kind)
    prefix = f"redraft-{kind}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        lock = LockFile(Path(name, IN_USE))
        assert lock.acquire()
        try:
            yield Path(name)
        finally:
            lock.release()


def remove_left(kind: str) -> None:
    """Remove the folders of ``kind`` whose processes have ended."""
    for file in Path(tempfile.gettempdir()).glob(f"redraft-{kind}-*/{IN_USE}"):
        lock = LockFile(file)
        # Another user's, or removed by another run meanwhile.
        with suppress(OSError):
            if lock.acquire():
                shutil.rmtree(file.parent, ignore_errors=True)
                lock.release()
