"""Datastores in memory, of token ids by path."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from repo_index.datastore import Datastore, IndexSnapshot
from repo_index.manifest import SegmentEntry
from repo_index.segment import Segment
from repo_index.store import StoredSegment

Files = Mapping[str, NDArray[np.int32]]


def datastore_of(repository: Files, common: Files | None = None) -> Datastore:
    """Return a datastore of the repository and of common code."""
    layers = [[Segment.from_files(files)] if files else [] for files in (repository, common)]
    datastore = Datastore()
    for layer, segments in zip(datastore._layers, layers, strict=True):
        for segment in segments:
            dead = np.zeros(len(segment.paths), np.bool_)
            entry = SegmentEntry(segment.name, 0, 0)
            layer.segments.append(StoredSegment(segment, entry, dead))
    return datastore


def path_of(snapshot: IndexSnapshot, file: int) -> str:
    """Return the path of a file that a lookup named; empty for an unknown one."""
    for part in snapshot.parts:
        if 0 <= file - part.first_file < len(part.segment.paths):
            return part.segment.paths[file - part.first_file]
    return ""


def token_count(segment: Segment) -> int:
    """Return the number of tokens of files, without separators."""
    return len(segment.tokens) - len(segment.paths) - 1
