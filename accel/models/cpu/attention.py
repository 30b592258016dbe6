"""Attention of the compiled forward: keys and values in the layout of ``matmul``. Query heads that
share a KV head are rows of the same product.

In a tree other rows are between a node and what it attends to. Both give the same bits: values
are added in the order of their positions, and probabilities are summed independently of their order
(``deterministic_sum``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.models.batch import BLOCKED
from accel.models.cpu.kv_quantisation import scale_probs, scale_scores
from accel.models.cpu.matmul import BLOCK, multiply, narrow
from accel.native.aligned_memory import empty
from accel.native.deterministic_sum import add_to, no_sums, sum_of
from accel.native.numba_cache import compiled
from accel.native.simd import (
    LANES,
    exp2,
    load,
    masked_load,
    maximum,
    multiply_add,
    reduce_max,
    splat,
    store,
)

Floats = NDArray[np.float32]
Stored = NDArray[Any]
"""Stored numbers: float32, the bits of fp16 as uint16, or int8."""

LOG2_E = float(np.log2(np.e))

# Measure with `python -m tests.benchmarks forward --model FILE`.
QUERIES = 12
"""Queries whose scores are computed at once: they fill tiles (``matmul.TILE_ROWS``), and the first
level of caches holds their scores behind some hundred tokens."""


class Shape(NamedTuple):
    """Query heads, KV heads and the size of a head; epsilon of norms; scale of scores."""

    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    scaling: float


class KVCache(NamedTuple):
    """Keys and values of all rows.

    keys: [layers, kv_heads, capacity / 32, head_dim, 32], for each block of positions a matrix of
    head_dim x position; values: [layers, kv_heads, head_dim / 32, capacity, 32]. float32, bits of
    fp16 as uint16, or int8.
    """

    keys: Stored
    values: Stored
    key_scales: Floats
    """[layers, kv_heads, capacity] of int8, see ``kv_quantisation``; otherwise without columns."""
    value_scales: Floats


class AttentionBuffers(NamedTuple):
    """Of some queries the scores, then the probabilities in the same places, what these are
    multiplied by, and the weighted sums of values. For one thread."""

    scores: Floats
    factors: Floats
    sums: Floats

    @classmethod
    def of(cls, columns: int, shape: Shape) -> AttentionBuffers:
        """Return buffers for ``columns`` columns of keys, and a block after them. Rows do not begin
        a page apart: a processor's cache has few places for such."""
        return cls(
            empty((QUERIES, columns + BLOCK + LANES), np.float32),
            empty((QUERIES,), np.float32),
            empty((QUERIES, shape.head_dim), np.float32),
        )


@compiled(borrows=True)
def apply_rope(
    vectors: Floats, start: int, cos_sin: Floats, position: int, turned: Floats, to: int
) -> None:
    """Apply RoPE to a head's vector (rotate_half) and write it to ``turned``; indices are flat."""
    half = cos_sin.shape[2]
    for i in range(0, half, LANES):
        cos = load(cos_sin, 2 * position * half + i)
        sin = load(cos_sin, (2 * position + 1) * half + i)
        first, right = load(vectors, start + i), load(vectors, start + half + i)
        store(turned, to + i, first * cos - right * sin)
        store(turned, to + half + i, right * cos + first * sin)


@compiled(borrows=True)
def store_key(keys: Stored, position: int, vector: Floats) -> None:
    """Write a head's key for a position. keys: of one layer and head."""
    block, column = position // BLOCK, position % BLOCK
    for i in range(len(vector)):
        keys[block, i, column] = narrow(vector[i], keys)


@compiled(borrows=True)
def store_value(values: Stored, position: int, vector: Floats) -> None:
    """Write a head's value for a position. values: of one layer and head."""
    for block in range(len(vector) // BLOCK):
        for i in range(BLOCK):
            values[block, position, i] = narrow(vector[block * BLOCK + i], values)


@compiled(borrows=True)
def move(kv: KVCache, sources: NDArray[np.int64], first: int) -> None:
    """Copy keys and values of positions, in ascending order, to those from ``first`` on."""
    keys, values = kv.keys, kv.values
    key_scales, value_scales = kv.key_scales, kv.value_scales
    for row in range(len(sources)):
        source, target = sources[row], first + row
        for layer in range(keys.shape[0]):
            for head in range(keys.shape[1]):
                if key_scales.shape[2] > 0:
                    key_scales[layer, head, target] = key_scales[layer, head, source]
                    value_scales[layer, head, target] = value_scales[layer, head, source]
                old, new = keys[layer, head, source // BLOCK], keys[layer, head, target // BLOCK]
                for i in range(len(old)):
                    new[i, target % BLOCK] = old[i, source % BLOCK]
                for block in range(values.shape[2]):
                    moved = values[layer, head, block]
                    for i in range(BLOCK):
                        moved[target, i] = moved[source, i]


@compiled(borrows=True)
def softmax_row(
    scores: Floats, row: int, end: int, mask: Floats, mask_row: int, past: int, scaling: float
) -> float:
    """Make of a row of scores exp(score - maximum) of the columns before ``end``, almost zero up to
    a multiple of ``BLOCK``; returns the sum: the softmax, but for the division.

    mask: float32 [.., >= end - past], contiguous, 0, or ``BLOCKED`` in columns that are left out;
    scores: a block longer than ``end``.
    """
    columns = (end + BLOCK - 1) // BLOCK * BLOCK
    start, masked = row * scores.shape[1], mask_row * mask.shape[1]
    for column in range(0, end - past, LANES):
        left_out = masked_load(mask, masked + column, end - past - column)
        store(scores, start + past + column, load(scores, start + past + column) + left_out)
    nothing = splat(np.float32(BLOCKED))
    store(scores, start + end, nothing)
    store(scores, start + end + LANES, nothing)
    first, second = load(scores, start), load(scores, start + LANES)
    for column in range(BLOCK, columns, BLOCK):
        first = maximum(first, load(scores, start + column))
        second = maximum(second, load(scores, start + column + LANES))
    power = np.float32(scaling * LOG2_E)
    scale = splat(power)
    shift = splat(-reduce_max(maximum(first, second)) * power)
    added = no_sums()
    for column in range(0, columns, LANES):
        prob = exp2(multiply_add(load(scores, start + column), scale, shift))
        store(scores, start + column, prob)
        added = add_to(added, prob)
    return np.float32(sum_of(added))


@compiled(borrows=True)
def attend(
    queries: Floats,
    kv: KVCache,
    layer: int,
    mask: Floats,
    offsets: NDArray[np.int32],
    past: int,
    shape: Shape,
    head: int,
    first_row: int,
    begin: int,
    stop: int,
    buffers: AttentionBuffers,
    attended: Floats,
) -> None:
    """Write the attention output of one KV head's queries from ``begin`` to before ``stop``, of the
    request whose rows begin with ``first_row``. kv: of that request.

    queries: [all rows * heads, head_dim], those of a KV head together; mask: float32 [rows,
    columns from ``past`` on]; offsets: int32 [all rows], positions from ``past`` on; attended: [all
    rows, heads * head_dim]. Columns after a part's last row are not read: no row attends to a
    later one.
    """
    group = shape.heads // shape.kv_heads
    queries_at = (head * len(offsets) + first_row) * group
    scores, factors, sums = buffers
    keys, values = kv.keys[layer, head], kv.values[layer, head]
    key_scales, value_scales = kv.key_scales[layer, head], kv.value_scales[layer, head]
    stride = attended.shape[1]
    span = stop - begin
    tiles = (span + QUERIES - 1) // QUERIES
    for tile in range(tiles):
        first = begin + span * tile // tiles
        count = begin + span * (tile + 1) // tiles - first
        end = past + (first + count - 1) // group + 1
        blocks = (end + BLOCK - 1) // BLOCK
        multiply(queries, queries_at + first, count, keys, blocks, shape.head_dim, scores, 0)
        for i in range(count):
            row = (first + i) // group
            if len(key_scales) > 0:
                scale_scores(scores, i, blocks * BLOCK, key_scales)
            sum_of_row = softmax_row(scores, i, end, mask, row, past, shape.scaling)
            if len(value_scales) > 0:
                scale_probs(scores, i, blocks * BLOCK, value_scales)
            # What is left after the product is a division by the sum.
            factors[i] = np.float32(1) / sum_of_row
        multiply(scores, 0, count, values, len(values), blocks * BLOCK, sums, 0)
        for i in range(count):
            row, member = (first + i) // group, (first + i) % group
            start = (first_row + row) * stride + (head * group + member) * shape.head_dim
            scale = splat(factors[i])
            for j in range(0, shape.head_dim, LANES):
                store(attended, start + j, load(sums, i * shape.head_dim + j) * scale)
