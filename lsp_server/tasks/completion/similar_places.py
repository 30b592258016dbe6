"""Finds the places of a workspace that share the most n-grams with a text."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from lsp_server.tasks.completion.indexed_files import IndexedFiles

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
