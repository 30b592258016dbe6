"""Finds the places of a workspace that share the most n-grams with a text, in its files as the
index has them: without reading the disk."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from repo_index.datastore import IndexSnapshot

MOST_PLACES = 2
PLACE_TOKENS = 96
SHORTEST_MATCH = 3
LONGEST_MATCH = 8
EVERY = 4
"""Tokens between two lookups."""
ROWS = 24
COMMON_ROWS = 12.0
"""What occurs in more places than this says little about any of them."""
LEAST_SCORE = 3.0

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


def similar_places(
    files: IndexedFiles,
    query: NDArray[np.int32],
    without: str,
    most: int = MOST_PLACES,
    place_tokens: int = PLACE_TOKENS,
) -> list[tuple[str, NDArray[np.int32]]]:
    """Return path and tokens (int32, at most ``place_tokens``) of the ``most`` places most like
    ``query``, int32 [n]: one of each file but ``without``. Shared runs of tokens count the more the
    longer and the rarer they are."""
    scores: defaultdict[str, float] = defaultdict(float)
    shared: dict[str, list[tuple[NDArray[np.int32], float]]] = {}
    for end in range(SHORTEST_MATCH, len(query) + 1, EVERY):
        context = query[max(0, end - LONGEST_MATCH) : end]
        lookup = files.snapshot.lookup(context, max_match=LONGEST_MATCH, limit=ROWS, depth=1)
        paths: set[str] = set()
        for length, count, file in zip(
            lookup.lengths.tolist(), lookup.counts.tolist(), lookup.files.tolist(), strict=True
        ):
            path = files.path_of(file)
            if length < SHORTEST_MATCH or not path or path == without or path in paths:
                continue
            paths.add(path)
            weight = (length - SHORTEST_MATCH + 1) / (1.0 + max(count, len(lookup) / COMMON_ROWS))
            scores[path] += weight
            shared.setdefault(path, []).append((context[len(context) - length :], weight))
    best = sorted(
        ((score, path) for path, score in scores.items() if score >= LEAST_SCORE),
        key=lambda pair: (-pair[0], pair[1]),
    )
    places = []
    for _, path in best[:most]:
        tokens = files.tokens(path)
        if tokens is not None:
            places.append((path, _best_place(tokens, shared[path], place_tokens)))
    return places


def _best_place(
    tokens: NDArray[np.int32], shared: list[tuple[NDArray[np.int32], float]], place_tokens: int
) -> NDArray[np.int32]:
    """Return the ``place_tokens`` of ``tokens`` in which most of ``shared`` occurs."""
    if len(tokens) <= place_tokens:
        return tokens
    density = np.zeros(len(tokens) + 1)
    for run, weight in shared:
        starts = np.flatnonzero(tokens[: len(tokens) - len(run) + 1] == run[0])
        for offset in range(1, len(run)):
            starts = starts[tokens[starts + offset] == run[offset]]
        density[starts + 1] += weight
    sums = np.cumsum(density)
    first = int(np.argmax(sums[place_tokens:] - sums[:-place_tokens]))
    return tokens[first : first + place_tokens]
