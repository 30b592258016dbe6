"""One writer for each store."""

from __future__ import annotations

from pathlib import Path

from operating_system.file_lock import LockFile
from repo_index.errors import StoreLocked

NAME = "lock"


def lock_store(folder: Path) -> LockFile:
    """Return the right to write a store, held until its ``release`` or the end of the process. The
    system gives it up with the process, however that ends; the file itself stays. Raises
    StoreLocked when another process holds it, OSError when it cannot be made."""
    lock = LockFile(folder / NAME)
    if not lock.acquire():
        raise StoreLocked(f"another process is indexing into {folder}; wait for it or end it")
    return lock
