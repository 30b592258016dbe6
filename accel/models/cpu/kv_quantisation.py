"""int8 absmax quantisation of keys and values, with one float32 scale for each head of each row,
which attention applies to columns of scores and probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.native.numba_cache import compiled
from accel.native.simd import LANES, load, maximum, reduce_max, splat, store

MOST = np.float32(127)
_LEAST = np.float32(2.0**-80)
"""Heads of smaller numbers become zeros: 127 divided by them might overflow."""
_LEAST_PROB = np.float32(2.0**-80)
"""Smaller probabilities do not count, and their products would be denormal, which takes some
processors a hundred times as long."""

Floats = NDArray[np.float32]


@compiled(borrows=True)
def absmax_quantise(vectors: Floats, start: int, count: int) -> float:
    """Scale ``count`` numbers from flat index ``start`` on so that the largest is 127; returns the
    scale."""
    zero = splat(np.float32(0))
    most = zero
    for i in range(0, count, LANES):
        numbers = load(vectors, start + i)
        most = maximum(most, maximum(numbers, zero - numbers))
    largest = reduce_max(most)
    if largest > _LEAST:
        factor = splat(MOST / largest)
        for i in range(0, count, LANES):
            store(vectors, start + i, load(vectors, start + i) * factor)
    return np.float32(largest / MOST)


@compiled(borrows=True)
def scale_scores(scores: Floats, row: int, columns: int, scales: Floats) -> None:
    """Multiply the first columns of a row of scores by the scales of the keys."""
    start = row * scores.shape[1]
    for column in range(0, columns, LANES):
        store(scores, start + column, load(scores, start + column) * load(scales, column))


@compiled(borrows=True)
def scale_probs(probs: Floats, row: int, columns: int, scales: Floats) -> None:
    """Multiply the first columns of a row of probabilities by the scales of the values."""
    start, least = row * probs.shape[1], splat(_LEAST_PROB)
    for column in range(0, columns, LANES):
        prob = maximum(load(probs, start + column), least)
        store(probs, start + column, prob * load(scales, column))
