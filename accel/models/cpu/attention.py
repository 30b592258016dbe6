"""Attention of the compiled forward: keys and values in the layout of ``matmul``.

Scores are products of few queries with a matrix of depth x position, what queries take is a
product of few rows of shares with a matrix of position x depth. Query heads that share a head of
keys are rows of the same product.

In a tree other rows stand between a node and what it attends, in plain decoding none do. Both give
the same bits: values are added in the order of their positions, where a share of next to nothing
changes nothing, and shares are summed so that no order matters (``deterministic_sum``). Tile
registers add values by steps of 32, so they are for those alone that stand far before a node in a
tree, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.batch import BLOCKED
from accel.models.cpu import amx as tiles
from accel.models.cpu import kv_scales, matmul
from accel.models.cpu.kv_scales import scale_scores, scale_shares
from accel.models.cpu.matmul import (
    BLOCK,
    TILE_ROWS,
    Packed,
    multiply,
    multiply_in_order,
    narrow,
    row_dtype,
)
from accel.native import deterministic_sum, simd
from accel.native.aligned_memory import empty
from accel.native.cpu_features import HAS_TILES
from accel.native.deterministic_sum import add_to, no_sums, sum_of
from accel.native.numba_cache import compiled_with
from accel.native.simd import (
    LANES,
    SECOND_FIRST,
    everywhere,
    highest,
    larger,
    load,
    load_some,
    multiply_add,
    power_of_two,
    store,
    store_in_order,
)

Floats = NDArray[np.float32]
Stored = NDArray[Any]
"""Numbers as they are kept: float32, the bits of bf16 as int16 or of fp16 as uint16, or int8, in
rows that are multiplied as ``matmul.row_dtype`` has them."""

LOG2_E = float(np.log2(np.e))

QUERIES = 2 * (tiles.TILE_ROWS if HAS_TILES else TILE_ROWS)
"""Queries whose scores are held at once."""

NEAR = 128
"""Positions before a row, at least, whose values are added one after another. In a tree of as many
nodes all that is farther away has been committed, and stands where it does in plain decoding."""


class Shape(NamedTuple):
    """Heads of queries, heads of keys, numbers in a head; epsilon of norms; scale of scores."""

    heads: int
    kv_heads: int
    depth: int
    eps: float
    scaling: float


class Kept(NamedTuple):
    """Keys and values of all rows.

    keys: [layers, kv_heads, capacity / 32, depth, 32], for each block of positions a matrix of
    depth x position; values: [layers, kv_heads, depth / 32, capacity, 32]. float32, bits of fp16
    as uint16, or int8. Of bf16, pairs along
    depth (keys) and position (values) stand together: int16 with half the third-last and twice
    the last size. Values' pairs stand as ``simd.store_in_order`` has shares.
    """

    keys: Stored
    values: Stored
    key_scales: Floats
    """[layers, kv_heads, capacity] of int8, see ``kv_scales``; otherwise without columns."""
    value_scales: Floats


class AttentionBuffers(NamedTuple):
    """Room for the scores and shares of some queries, and what they take, from values far away and
    from the others (see ``far_of``). For one thread."""

    scores: Floats
    shares: Stored
    taken: Floats
    far_shares: Stored
    far_taken: Floats

    @classmethod
    def of(cls, columns: int, shape: Shape, dtype: Any) -> AttentionBuffers:
        """Room over ``columns`` columns of keys, and a block behind them. Rows do not begin a page
        apart, where a cache holds few of them."""
        return cls(
            empty((QUERIES, columns + BLOCK + LANES), np.float32),
            empty((QUERIES, columns + BLOCK), row_dtype(dtype)),
            empty((QUERIES, shape.depth), np.float32),
            empty((QUERIES, columns + BLOCK), row_dtype(dtype)),
            empty((QUERIES, shape.depth), np.float32),
        )


@compiled_with(simd, matmul, borrows=True)
def rotate(vectors: Floats, at: int, rotations: Floats, position: int, given: Stored, to: int):  # type: ignore[no-untyped-def]
    """Turn a head's numbers by its position (rotate_half); all places are flat."""
    half = rotations.shape[2]
    for i in range(0, half, LANES):
        cos = load(rotations, 2 * position * half + i)
        sin = load(rotations, (2 * position + 1) * half + i)
        left, right = load(vectors, at + i), load(vectors, at + half + i)
        store(given, to + i, left * cos - right * sin)
        store(given, to + half + i, right * cos + left * sin)


@compiled_with(matmul, borrows=True)
def keep_key(keys: Stored, place: int, vector: Floats) -> None:
    """Write a head's key for a position. keys: of one layer and head."""
    pair = keys.shape[2] // BLOCK
    block, column = place // BLOCK, pair * (place % BLOCK)
    for i in range(len(vector) // pair):
        for odd in range(pair):
            keys[block, i, column + odd] = narrow(vector[pair * i + odd], keys)


@compiled_with(simd, borrows=True)
def _place_in_pair(place: int, pair: int) -> int:
    """Where a position's value stands in its pair, see ``simd.SECOND_FIRST``."""
    return place % pair if pair == 1 else place % 2 ^ SECOND_FIRST


@compiled_with(simd, matmul, borrows=True)
def keep_value(values: Stored, place: int, vector: Floats) -> None:
    """Write a head's value for a position. values: of one layer and head."""
    pair = values.shape[2] // BLOCK
    row, odd = place // pair, _place_in_pair(place, pair)
    for block in range(len(vector) // BLOCK):
        for i in range(BLOCK):
            values[block, row, pair * i + odd] = narrow(vector[block * BLOCK + i], values)


@compiled_with(simd, matmul, borrows=True)
def move(kept: Kept, sources: NDArray[np.int64], first: int) -> None:
    """Copy keys and values of positions, in ascending order, to those from ``first`` on."""
    keys, values = kept.keys, kept.values
    key_scales, value_scales = kept.key_scales, kept.value_scales
    pair = keys.shape[4] // BLOCK
    for row in range(len(sources)):
        source, target = sources[row], first + row
        column, place = source % BLOCK * pair, target % BLOCK * pair
        old, new = _place_in_pair(source, pair), _place_in_pair(target, pair)
        for layer in range(keys.shape[0]):
            for head in range(keys.shape[1]):
                if key_scales.shape[2] > 0:
                    key_scales[layer, head, target] = key_scales[layer, head, source]
                    value_scales[layer, head, target] = value_scales[layer, head, source]
                taken, given = (
                    keys[layer, head, source // BLOCK],
                    keys[layer, head, target // BLOCK],
                )
                for i in range(len(taken)):
                    for odd in range(pair):
                        given[i, place + odd] = taken[i, column + odd]
                for block in range(values.shape[2]):
                    taken = values[layer, head, block]
                    for i in range(BLOCK):
                        taken[target // pair, pair * i + new] = taken[
                            source // pair, pair * i + old
                        ]


@compiled_with(borrows=True)
def far_of(position: int, like: Stored) -> int:
    """Positions, a multiple of ``BLOCK``, that are far before a row at ``position``: none where
    values like these are all added one after another."""
    if not HAS_TILES or like.itemsize != 2:
        return 0
    return max(position - NEAR, 0) // BLOCK * BLOCK


@compiled_with(simd, matmul, deterministic_sum, borrows=True)
def write_shares(
    scores: Floats,
    row: int,
    end: int,
    mask: Floats,
    mask_row: int,
    past: int,
    scaling: float,
    shares: Stored,
    far_shares: Stored,
    far: int,
    least_far: int,
    most_far: int,
) -> float:
    """Write a row of exp(score - highest) of the columns before ``end``, next to nothing up to a
    multiple of ``BLOCK``; returns the sum.

    mask: float32 [.., >= end - past], contiguous, 0, or ``BLOCKED`` in columns that are left out;
    scores: with room for a block behind ``end``. Those of the first ``far`` columns are written to
    ``far_shares``, which has zeros up to ``most_far``, the others to ``shares``, which begins with
    column ``least_far``.
    """
    columns = (end + BLOCK - 1) // BLOCK * BLOCK
    start, masked = row * scores.shape[1], mask_row * mask.shape[1]
    to, far_to = row * shares.shape[1] - least_far, row * far_shares.shape[1]
    for column in range(0, end - past, LANES):
        left_out = load_some(mask, masked + column, end - past - column)
        store(scores, start + past + column, load(scores, start + past + column) + left_out)
    nothing = everywhere(np.float32(BLOCKED))
    store(scores, start + end, nothing)
    store(scores, start + end + LANES, nothing)
    first, second = load(scores, start), load(scores, start + LANES)
    for column in range(BLOCK, columns, BLOCK):
        first = larger(first, load(scores, start + column))
        second = larger(second, load(scores, start + column + LANES))
    power = np.float32(scaling * LOG2_E)
    scale = everywhere(power)
    shift = everywhere(-highest(larger(first, second)) * power)
    added = no_sums(shares)
    for column in range(0, columns, LANES):
        share = power_of_two(multiply_add(load(scores, start + column), scale, shift))
        if column < far:
            store_in_order(far_shares, far_to + column, share)
        else:
            store_in_order(shares, to + column, share)
        added = add_to(added, share)
    zero = everywhere(np.float32(0))
    for column in range(least_far, far, LANES):
        store(shares, to + column, zero)
    for column in range(far, most_far, LANES):
        store(far_shares, far_to + column, zero)
    return np.float32(sum_of(added, columns // LANES))


@compiled_with(simd, matmul, deterministic_sum, tiles, kv_scales, borrows=True)
def attend(
    queries: Stored,
    keys: Packed,
    values: Packed,
    key_scales: Floats,
    value_scales: Floats,
    mask: Floats,
    offsets: NDArray[np.int32],
    past: int,
    shape: Shape,
    head: int,
    begin: int,
    stop: int,
    room: AttentionBuffers,
    attended: Stored,
) -> None:
    """Write what queries of one head of keys, from ``begin`` to before ``stop``, take from the
    values. keys, values and their scales: of the head.

    queries: [rows * heads, depth], those of a head of keys together; mask: float32 [rows,
    columns from ``past`` on]; offsets: int32 [rows], positions from ``past`` on; attended: [rows,
    heads * depth]. Columns of rows behind a part's last are not looked at: no row attends a later
    one.
    """
    rows = len(mask)
    group = shape.heads // shape.kv_heads
    depth = keys.shape[1]
    pair = shape.depth // depth
    scores, shares, taken = room.scores, room.shares, room.taken
    far_shares, far_taken = room.far_shares, room.far_taken
    width = attended.shape[1]
    whole = rows * group
    wanted = stop - begin
    parts = (wanted + QUERIES - 1) // QUERIES
    for part in range(parts):
        first = begin + wanted * part // parts
        count = begin + wanted * (part + 1) // parts - first
        end = past + (first + count - 1) // group + 1
        blocks = (end + BLOCK - 1) // BLOCK
        multiply(queries, head * whole + first, count, keys, blocks, depth, scores, 0)
        least_far = most_far = far_of(past + offsets[first // group], shares)
        for row in range(first // group + 1, (first + count - 1) // group + 1):
            far = far_of(past + offsets[row], shares)
            least_far, most_far = min(least_far, far), max(most_far, far)
        for i in range(count):
            row = (first + i) // group
            far = far_of(past + offsets[row], shares)
            if len(key_scales) > 0:
                scale_scores(scores, i, blocks * BLOCK, key_scales)
            sum_of_row = write_shares(
                *(scores, i, end, mask, row, past, shape.scaling),
                *(shares, far_shares, far, least_far, most_far),
            )
            if len(value_scales) > 0:
                scale_shares(shares, i, blocks * BLOCK, value_scales)
            # What is left after the product is a division by the sum.
            scores[i, 0] = np.float32(1) / sum_of_row
        near, skipped = (blocks * BLOCK - least_far) // pair, least_far // pair
        multiply_in_order(shares, 0, count, values, len(values), near, taken, 0, skipped)
        if most_far > 0:
            multiply(far_shares, 0, count, values, len(values), most_far // pair, far_taken, 0)
        for i in range(count):
            row, member = (first + i) // group, (first + i) % group
            start = row * width + (head * group + member) * shape.depth
            scale = everywhere(scores[i, 0])
            for j in range(0, shape.depth, LANES):
                found = load(taken, i * shape.depth + j)
                if most_far > 0:
                    found = found + load(far_taken, i * shape.depth + j)
                store(attended, start + j, found * scale)


__all__ = [
    "QUERIES",
    "AttentionBuffers",
    "Floats",
    "Kept",
    "Shape",
    "Stored",
    "attend",
    "keep_key",
    "keep_value",
    "move",
    "rotate",
    "write_shares",
]
