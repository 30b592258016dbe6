"""Activations of the compiled forward: one set of buffers that every layer writes again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accel.models.cpu.attention import Floats, Shape
from accel.models.cpu.layer_matrices import blocks_of, is_quantised
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.quantised.activations import Q8_BYTES, Q8Blocks
from accel.models.cpu.quantised.packed_layouts import BLOCK as QUANTISED_BLOCK
from accel.models.cpu.weights import Weights
from accel.native.aligned_memory import empty
from accel.native.numba_cache import compiled
from accel.native.simd import LANES

# Measure with `python -m tests.benchmarks forward --model FILE`.
TILE_BLOCKS = 8
"""Blocks of columns that are projected at once at most."""

_IN_CACHE = 64
"""Rows times blocks of columns that the first level of caches has room for, about."""


@compiled(borrows=True)
def blocks_at_once(rows: int) -> int:
    """Return the number of blocks of columns to project at once for ``rows`` rows."""
    return max(1, min(TILE_BLOCKS, _IN_CACHE // rows))


class TileBuffers(NamedTuple):
    """Columns that were just projected, until what follows for them is done. For one thread: what
    all threads write in turn moves between their caches.

    products: [rows, >= 2 * ``TILE_BLOCKS`` blocks]; gated: [rows, >= ``TILE_BLOCKS`` blocks]. Rows
    do not begin a page apart.
    """

    products: Floats
    gated: Floats

    @classmethod
    def allocate(cls, rows: int, shape: Shape) -> TileBuffers:
        """Return buffers for ``rows`` rows, and for a head's columns."""
        columns = max(TILE_BLOCKS * BLOCK, shape.head_dim) + LANES
        return cls(
            empty((rows, 2 * columns + LANES), np.float32), empty((rows, columns), np.float32)
        )


class Scratch(NamedTuple):
    """Activations of some rows. q8: inputs of the next product with quantised matrices, quantised;
    gated, ``gated_q8``: the same for the down projection, as its matrices are."""

    x: Floats
    normed: Floats
    queries: Floats
    attended: Floats
    gated: Floats
    q8: Q8Blocks
    gated_q8: Q8Blocks

    @classmethod
    def allocate(cls, rows: int, weights: Weights, shape: Shape) -> Scratch:
        """Return buffers for ``rows`` rows."""
        hidden_size = len(weights.norm)
        attended = shape.heads * shape.head_dim
        intermediate_size = blocks_of(weights.gate_up) * BLOCK // 2
        has_q8 = is_quantised(weights.qkv)
        most_inputs = max(hidden_size, attended) if has_q8 else 0
        gated = intermediate_size if has_q8 else 0
        return cls(
            x=empty((rows, hidden_size), np.float32),
            normed=empty((rows, hidden_size), np.float32),
            queries=empty((rows * shape.heads, shape.head_dim), np.float32),
            attended=empty((rows, attended), np.float32),
            gated=empty((0 if is_quantised(weights.down) else rows, intermediate_size), np.float32),
            q8=empty((rows, most_inputs // QUANTISED_BLOCK * Q8_BYTES), np.int8),
            gated_q8=empty((rows, gated // QUANTISED_BLOCK * Q8_BYTES), np.int8),
        )
