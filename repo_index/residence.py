"""Keeps small what mapped segments hold resident.

Pages of a mapped file count as the process's own while they are mapped, although the system's cache
holds them once for all. Letting go of them costs a soft fault when they are next needed, and Linux
maps far more than the page that is asked for (whole large folios of its cache): a lookup in 60
million tokens maps 90 MB at once. So they are let go of when the process idles, and while it works
only where they are very many.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from pathlib import Path

MAX_RESIDENT = 512 << 20
"""Bytes of files that may be mapped resident, beyond those when the datastore was opened."""

_STATM = Path("/proc/self/statm")


def resident_file_bytes() -> int:
    """Bytes of files that this process has resident; 0 where the system does not say."""
    try:
        return int(_STATM.read_text().split()[2]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class Residence:
    """Lets go of mapped pages when they have become many. Called between requests."""

    def __init__(self, limit: int = MAX_RESIDENT) -> None:
        self._limit = limit
        self._base = resident_file_bytes()

    def keep_small(self, mappings: Iterable[mmap.mmap | None]) -> None:
        """Costs some microseconds, and some milliseconds when there is much to let go of."""
        if resident_file_bytes() - self._base > self._limit:
            self.release(mappings)

    def release(self, mappings: Iterable[mmap.mmap | None]) -> None:
        """Let go of all that is mapped of these files. They stay usable."""
        for mapping in mappings:
            if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
                mapping.madvise(mmap.MADV_DONTNEED)
        # What is left is not ours: libraries that were loaded meanwhile.
        self._base = resident_file_bytes()
