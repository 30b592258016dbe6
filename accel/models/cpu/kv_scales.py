"""Scales of keys and values in eight bits: one float32 for each head of each row.

A head's numbers are divided so that the largest is 127, and rounded. Attention multiplies with the
whole numbers: a key's scale belongs to its column of scores, a value's to its column of shares. So
it depends on nothing but the row's own numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.native import simd
from accel.native.numba_cache import compiled_with
from accel.native.simd import LANES, everywhere, highest, larger, load, store

MOST = np.float32(127)
_LEAST = np.float32(2.0**-80)
"""Heads of smaller numbers are kept as zeros: 127 divided by them might be no number."""
_LEAST_SHARE = np.float32(2.0**-80)
"""Smaller shares are next to nothing, too, and their products would be denormal, which takes some
processors a hundred times as long."""

Floats = NDArray[np.float32]


@compiled_with(simd, borrows=True)
def scale_down(vectors: Floats, at: int, count: int) -> float:
    """Divide numbers from a flat place on, so that the largest is 127; returns
    what one counts."""
    zero = everywhere(np.float32(0))
    most = zero
    for i in range(0, count, LANES):
        numbers = load(vectors, at + i)
        most = larger(most, larger(numbers, zero - numbers))
    largest = highest(most)
    if largest > _LEAST:
        factor = everywhere(MOST / largest)
        for i in range(0, count, LANES):
            store(vectors, at + i, load(vectors, at + i) * factor)
    return np.float32(largest / MOST)


@compiled_with(simd, borrows=True)
def scale_scores(scores: Floats, row: int, columns: int, scales: Floats) -> None:
    """Multiply the first columns of a row of scores by those of keys."""
    start = row * scores.shape[1]
    for column in range(0, columns, LANES):
        store(scores, start + column, load(scores, start + column) * load(scales, column))


@compiled_with(simd, borrows=True)
def scale_shares(shares: Floats, row: int, columns: int, scales: Floats) -> None:
    """Multiply the first columns of a row of shares by those of values."""
    start, least = row * shares.shape[1], everywhere(_LEAST_SHARE)
    for column in range(0, columns, LANES):
        share = larger(load(shares, start + column), least)
        store(shares, start + column, share * load(scales, column))


__all__ = ["scale_down", "scale_scores", "scale_shares"]
