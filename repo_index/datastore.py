"""The set of segments of a workspace, and snapshots of it that answer lookups.

A snapshot holds *layers*: open buffers, the repository (base and changed segments), common code.
Every layer answers for itself, with at most ``limit`` rows; a file that is newer in a nearer
segment is dead in the farther ones. Snapshots are immutable: whoever holds one may look up from any
thread while the set changes, and never waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from repo_index.matching import (
    drop_dead_rings,
    gather_rows,
    longest_first,
    match_ranges,
    plan_rows,
    seed_of,
)
from repo_index.ordering import DEPTH
from repo_index.segment import Segment

BUFFER: Final = 3
REPOSITORY: Final = 4
COMMON: Final = 5
"""Layers, numbered as the drafting side numbers its sources."""

NO_FILES_DEAD = np.empty(0, np.bool_)


@dataclass(slots=True)
class Matches:
    """What followed earlier occurrences of the end of a context, longer matches first.

    tokens: int32 [n, depth], padded with -1 where a file ends; lengths: int32 [n], how many tokens
    before the continuation equal the end of the context (the longest match of that occurrence,
    up to ``max_match``); counts: float32 [n], how many occurrences a row stands for; sources: int8
    [n], layers; files: int32 [n], for :meth:`Snapshot.path_of`.
    """

    tokens: NDArray[np.int32]
    lengths: NDArray[np.int32]
    counts: NDArray[np.float32]
    sources: NDArray[np.int8]
    files: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True)
class Part:
    """One segment as a snapshot sees it. dead: bool [files], empty when every file lives."""

    segment: Segment
    layer: int
    dead: NDArray[np.bool_]
    first_file: int


class Snapshot:
    """An unchanging view of a datastore."""

    def __init__(self, parts: Sequence[tuple[Segment, int, NDArray[np.bool_]]] = ()) -> None:
        """``parts``: segments with their layer and the dead among their files."""
        self.parts: list[Part] = []
        self.file_count = 0
        for segment, layer, dead in parts:
            self.parts.append(Part(segment, layer, dead, self.file_count))
            self.file_count += len(segment.paths)
        by_layer: dict[int, list[Part]] = {}
        for part in self.parts:
            if len(part.segment.order):
                by_layer.setdefault(part.layer, []).append(part)
        self._layers = list(by_layer.values())

    @property
    def token_count(self) -> int:
        """Tokens in all segments, those of dead files too."""
        return sum(part.segment.token_count for part in self.parts)

    def path_of(self, file: int) -> str:
        """Path of a file that a lookup named; empty for an unknown one."""
        for part in self.parts:
            if 0 <= file - part.first_file < len(part.segment.paths):
                return part.segment.paths[file - part.first_file]
        return ""

    def lookup(
        self, context: NDArray[np.int32], *, max_match: int = 16, limit: int = 64, depth: int = 16
    ) -> Matches:
        """Continuations of the longest suffixes of ``context`` (int32 [m]).

        Of every layer at most ``limit`` rows: those of the longest match, and some of every shorter
        one. Positions are sampled without bias where a match length has more than its share.
        Nothing is found for an empty context; never raises, never waits.
        """
        context = np.ascontiguousarray(context[-DEPTH:], np.int32)
        seed = seed_of(context)
        size = limit * len(self._layers)
        tokens = np.empty((size, depth), np.int32)
        lengths = np.empty(size, np.int32)
        counts = np.empty(size, np.float32)
        sources = np.empty(size, np.int8)
        files = np.empty(size, np.int32)
        row = 0
        for parts in self._layers:
            ranges = np.zeros((len(parts), DEPTH + 2, 2), np.int64)
            longest = np.empty(len(parts), np.int64)
            for i, part in enumerate(parts):
                segment = part.segment
                longest[i] = match_ranges(
                    segment.tokens,
                    segment.separator,
                    segment.order,
                    context,
                    max_match,
                    ranges[i],
                )
                if len(part.dead):
                    longest[i] = drop_dead_rings(
                        segment.order, segment.starts, part.dead, ranges[i], longest[i], limit
                    )
            rows = np.zeros((DEPTH + 2, 2), np.int64)
            if not plan_rows(ranges, longest, limit, max(1, limit // 32), rows):
                continue
            seen = np.zeros(DEPTH + 2, np.int64)
            for i, part in enumerate(parts):
                segment = part.segment
                row = gather_rows(
                    segment.tokens,
                    segment.separator,
                    segment.order,
                    segment.starts,
                    part.dead,
                    ranges[i],
                    longest[i],
                    rows,
                    seen,
                    seed,
                    part.layer,
                    part.first_file,
                    row,
                    tokens,
                    lengths,
                    counts,
                    sources,
                    files,
                )
        places = np.empty(row, np.int64)
        longest_first(lengths[:row], places)
        return Matches(
            tokens[places], lengths[places], counts[places], sources[places], files[places]
        )


class Datastore:
    """Segments of a workspace and of common code. ``snapshot`` gives the view to look up in."""

    def __init__(self, repository: Sequence[Segment] = (), common: Sequence[Segment] = ()) -> None:
        self._snapshot = Snapshot(
            [(segment, REPOSITORY, NO_FILES_DEAD) for segment in repository]
            + [(segment, COMMON, NO_FILES_DEAD) for segment in common]
        )

    @classmethod
    def from_token_files(
        cls,
        repository: Mapping[str, NDArray[np.int32]],
        common: Mapping[str, NDArray[np.int32]] | None = None,
    ) -> Datastore:
        """A datastore in memory: path to token ids of the repository and of common code."""
        return cls(
            [Segment.from_files(repository)] if repository else [],
            [Segment.from_files(common)] if common else [],
        )

    def snapshot(self) -> Snapshot:
        """The datastore as it is now."""
        return self._snapshot
