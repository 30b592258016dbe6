"""RMS norm (Zhang and Sennrich 2019) of the residual stream and of heads, and the residual sum."""

from __future__ import annotations

import numpy as np

from accel.models.cpu.attention import Floats
from accel.native.numba_cache import compiled
from accel.native.simd import LANES, load, multiply_add, reduce_add, splat, store


@compiled(borrows=True)
def add_residual(x: Floats, added: Floats, rows: int, first: int, last: int) -> None:
    """Add to the columns from ``first`` to before ``last`` of the residual stream. added: for these
    columns, from its own first on."""
    for row in range(rows):
        to, start = row * x.shape[1], row * added.shape[1] - first
        for i in range(first, last, LANES):
            store(x, to + i, load(x, to + i) + load(added, start + i))


@compiled(borrows=True)
def _normalise(x: Floats, start: int, weight: Floats, eps: float, normed: Floats) -> None:
    size, zero = len(weight), splat(np.float32(0))
    even, odd = zero, zero
    for i in range(0, size, 2 * LANES):
        first, second = load(x, start + i), load(x, start + i + LANES)
        even, odd = multiply_add(first, first, even), multiply_add(second, second, odd)
    mean = reduce_add(even + odd) / np.float32(size)
    scale = splat(np.float32(1) / np.sqrt(mean + np.float32(eps)))
    for i in range(0, size, LANES):
        store(normed, start + i, load(x, start + i) * scale * load(weight, i))


@compiled(borrows=True)
def rms_norm(x: Floats, first: int, last: int, weight: Floats, eps: float, normed: Floats) -> None:
    """Normalise the rows from ``first`` to before ``last`` of the residual stream."""
    for row in range(first, last):
        _normalise(x, row * x.shape[1], weight, eps, normed)


@compiled(borrows=True)
def rms_norm_head(vectors: Floats, start: int, weight: Floats, eps: float) -> None:
    """Normalise a head's vector in place, from flat index ``start`` on. An empty weight means that
    the model has no such norm."""
    if len(weight):
        _normalise(vectors, start, weight, eps, vectors)
