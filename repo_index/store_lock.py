"""One writer for each store."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType

from repo_index.errors import StoreLocked

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class StoreLock:
    """The right to write a store, held until ``release`` or the end of the process.

    The system gives it up with the process, however that ends; the file itself stays.
    """

    def __init__(self, folder: Path) -> None:
        """Raises StoreLocked when another process holds it, OSError when it cannot be made."""
        self._descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._descriptor)
        except OSError as error:
            os.close(self._descriptor)
            raise StoreLocked(
                f"another process is indexing into {folder}; wait for it or end it"
            ) from error

    def release(self) -> None:
        """Let another process write."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> StoreLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
