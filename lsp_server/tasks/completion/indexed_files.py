"""The files of a workspace as its index has them: by path, without reading the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from repo_index.datastore import IndexSnapshot

BUFFER: Final = 3
REPOSITORY: Final = 4
"""Layers of ``repo_index.datastore``: open buffers and files on the disk."""


class IndexedFiles:
    """What one snapshot knows of the files of its workspace, open buffers before files."""

    def __init__(self, snapshot: IndexSnapshot) -> None:
        self.snapshot = snapshot
        self._parts = [part for part in snapshot.parts if part.layer in (BUFFER, REPOSITORY)]

    @property
    def state(self) -> tuple[tuple[str, int], ...]:
        """Changes when a file was indexed anew, not while a buffer is typed into."""
        return tuple(
            (part.segment.name, len(part.segment.tokens))
            for part in self._parts
            if part.layer == REPOSITORY
        )

    def tokens(self, path: str) -> NDArray[np.int32] | None:
        """Token ids of a file (int32); None for one that is not indexed or has none."""
        for part in self._parts:
            index = part.segment.file_ids.get(path)
            if index is not None and not (len(part.dead) and part.dead[index]):
                found = part.segment.file_tokens(index)
                if len(found):
                    return found.astype(np.int32)
        return None

    def path_of(self, file: int) -> str:
        """Path of a file that a lookup named; empty for common code."""
        for part in self._parts:
            if 0 <= file - part.first_file < len(part.segment.paths):
                return part.segment.paths[file - part.first_file]
        return ""
