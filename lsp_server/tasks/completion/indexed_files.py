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
    """The files of a workspace in one snapshot of its index, open buffers before files."""

    def __init__(self, snapshot: IndexSnapshot) -> None:
        self.snapshot = snapshot
        self._parts = [
            layer_part for layer_part in snapshot.parts if layer_part.layer in (BUFFER, REPOSITORY)
        ]

    @property
    def state(self) -> tuple[tuple[str, int], ...]:
        """Changes when a file was indexed anew, not while a buffer is typed into."""
        return tuple(
            (layer_part.segment.name, len(layer_part.segment.tokens))
            for layer_part in self._parts
            if layer_part.layer == REPOSITORY
        )

    def tokens(self, path: str) -> NDArray[np.int32] | None:
        """Return token ids of a file (int32); None for one that is not indexed or has none."""
        for layer_part in self._parts:
            index = layer_part.segment.file_ids.get(path)
            if index is not None and not (len(layer_part.dead) and layer_part.dead[index]):
                tokens = layer_part.segment.file_tokens(index)
                if len(tokens):
                    return tokens.astype(np.int32)
        return None

    def path_of(self, file: int) -> str:
        """Return path of a file that a lookup named; empty for common code."""
        for layer_part in self._parts:
            if 0 <= file - layer_part.first_file < len(layer_part.segment.paths):
                return layer_part.segment.paths[file - layer_part.first_file]
        return ""
