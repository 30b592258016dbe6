"""One writer for each store."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from operating_system.file_lock import LockFile
from repo_index.errors import StoreLocked

NAME = "lock"


class StoreLock:
    """The right to write a store, held until ``release`` or the end of the process. The system
    gives it up with the process, however that ends; the file itself stays."""

    def __init__(self, folder: Path) -> None:
        """Raises StoreLocked when another process holds it, OSError when it cannot be made."""
        self._lock = LockFile(folder / NAME)
        if not self._lock.acquire():
            raise StoreLocked(f"another process is indexing into {folder}; wait for it or end it")

    def release(self) -> None:
        """Let another process write."""
        self._lock.release()

    def __enter__(self) -> StoreLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
