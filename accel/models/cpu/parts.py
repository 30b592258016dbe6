"""The parts of the compiled forward: what it holds, and what each of its steps does to rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu import attention as compiled_attention
from accel.models.cpu import layer_matrices, matmul
from accel.models.cpu.attention import Floats, Shape, Stored, keep_key, keep_value, rotate
from accel.models.cpu.layer_matrices import Matrices, blocks_of, is_quantised
from accel.models.cpu.matmul import BLOCK, row_dtype
from accel.models.cpu.quantised.activations import RECORD, Records
from accel.models.cpu.quantised.forms import BLOCK as QUANTISED_BLOCK
from accel.native import simd as lanes
from accel.native.aligned_memory import empty
from accel.native.numba_cache import compiled_with
from accel.native.simd import (
    LANES,
    everywhere,
    exponential,
    load,
    multiply_add,
    smaller,
    store,
    total,
)


class Weights(NamedTuple):
    """Matrices are those of ``layer_matrices``, the head one of one layer.

    embedding: stored [vocabulary, width], or the place of a quantised one; norms: float32 [layers,
    width], the last [width]; qkv_bias: float32 [layers, out], query_norm and
    key_norm: of each head, float32 [layers, depth], all [layers, 0] where there is none.
    """

    embedding: Matrices
    attention_norm: Floats
    qkv: Matrices
    qkv_bias: Floats
    query_norm: Floats
    key_norm: Floats
    output: Matrices
    mlp_norm: Floats
    gate_up: Matrices
    down: Matrices
    norm: Floats
    head: Matrices


def stored_dtype(weights: Weights) -> np.dtype[Any]:
    """What keys and values are kept as: as weights are, or float32 where these are quantised."""
    dtype = weights.embedding.dtype
    return np.dtype(np.float32) if is_quantised(weights.embedding) else dtype


class Scratch(NamedTuple):
    """Room for the activations of some rows. records: of those that are multiplied with quantised
    matrices next."""

    x: Floats
    added: Floats
    normed: Stored
    qkv: Floats
    queries: Stored
    attended: Stored
    gate_up: Floats
    gated: Stored
    records: Records

    @classmethod
    def room(cls, rows: int, weights: Weights, shape: Shape) -> Scratch:
        """Room for ``rows`` rows."""
        width = len(weights.norm)
        dtype = row_dtype(stored_dtype(weights))
        attended = shape.heads * shape.depth
        qkv, hidden = blocks_of(weights.qkv) * BLOCK, blocks_of(weights.gate_up) * BLOCK
        wide_rows = (rows, blocks_of(weights.output) * BLOCK)
        deepest = max(width, attended, hidden // 2) if is_quantised(weights.qkv) else 0
        return cls(
            x=empty((rows, width), np.float32),
            added=empty(wide_rows, np.float32),
            normed=empty((rows, width), dtype),
            qkv=empty((rows, qkv), np.float32),
            queries=empty((rows * shape.heads, shape.depth), dtype),
            attended=empty((rows, attended), dtype),
            gate_up=empty((rows, hidden), np.float32),
            gated=empty((rows, hidden // 2), dtype),
            records=empty((rows, deepest // QUANTISED_BLOCK * RECORD), np.int8),
        )


@compiled_with(borrows=True, forceinline=True)
def rows_in(scratch: Scratch, begin: int, end: int, heads: int) -> Scratch:
    """The room of the rows from ``begin`` to before ``end``."""
    return Scratch(
        scratch.x[begin:end],
        scratch.added[begin:end],
        scratch.normed[begin:end],
        scratch.qkv[begin:end],
        scratch.queries[begin * heads : end * heads],
        scratch.attended[begin:end],
        scratch.gate_up[begin:end],
        scratch.gated[begin:end],
        scratch.records[begin:end],
    )


@compiled_with(lanes, borrows=True)
def add(x: Floats, added: Floats, rows: int) -> None:
    """Add to the residual stream."""
    for row in range(rows):
        to, start = row * x.shape[1], row * added.shape[1]
        for i in range(0, x.shape[1], LANES):
            store(x, to + i, load(x, to + i) + load(added, start + i))


@compiled_with(lanes, borrows=True)
def normalise(x: Floats, rows: int, weight: Floats, eps: float, normed: Stored) -> None:
    """Write the root mean square norm of the residual stream."""
    width, zero = x.shape[1], everywhere(np.float32(0))
    for row in range(rows):
        start = row * width
        even, odd = zero, zero
        for i in range(0, width, 2 * LANES):
            first, second = load(x, start + i), load(x, start + i + LANES)
            even, odd = multiply_add(first, first, even), multiply_add(second, second, odd)
        mean = total(even + odd) / np.float32(width)
        scale = everywhere(np.float32(1) / np.sqrt(mean + np.float32(eps)))
        for i in range(0, width, LANES):
            store(normed, start + i, load(x, start + i) * scale * load(weight, i))


@compiled_with(lanes, borrows=True)
def normalise_head(vectors: Floats, at: int, weight: Floats, eps: float) -> None:
    """Write the root mean square norm of a head's numbers, from a flat place on, in their place;
    nothing where the weight is empty."""
    depth, zero = len(weight), everywhere(np.float32(0))
    if depth == 0:
        return
    even, odd = zero, zero
    for i in range(0, depth, 2 * LANES):
        first, second = load(vectors, at + i), load(vectors, at + i + LANES)
        even, odd = multiply_add(first, first, even), multiply_add(second, second, odd)
    mean = total(even + odd) / np.float32(depth)
    scale = everywhere(np.float32(1) / np.sqrt(mean + np.float32(eps)))
    for i in range(0, depth, LANES):
        store(vectors, at + i, load(vectors, at + i) * scale * load(weight, i))


@compiled_with(lanes, borrows=True)
def gate(gate_up: Floats, gated: Stored, first: int, last: int) -> None:
    """silu of the first half times the second, of columns from ``first`` to before ``last`` of
    gated. gate_up: [rows, >= 2 * width]."""
    rows, width = gated.shape
    one, zero = everywhere(np.float32(1)), everywhere(np.float32(0))
    most = everywhere(np.float32(87))
    for row in range(rows):
        start = row * gate_up.shape[1]
        for i in range(first, last, LANES):
            value, other = load(gate_up, start + i), load(gate_up, start + width + i)
            share = value / (one + exponential(smaller(zero - value, most)))
            store(gated, row * width + i, share * other)


@compiled_with(lanes, matmul, compiled_attention, borrows=True)
def place_rows(
    qkv: Floats,
    bias: Floats,
    query_norm: Floats,
    key_norm: Floats,
    offsets: NDArray[np.int32],
    first: int,
    last: int,
    place: int,
    past: int,
    shape: Shape,
    rotations: Floats,
    keys: Stored,
    values: Stored,
    queries: Stored,
) -> None:
    """Add the bias to projected rows from ``first`` to before ``last``, normalise the heads of
    their queries and keys and turn them by their positions; write the keys and values of one layer,
    those of the first of all rows at ``place``, and the queries as ``attend`` takes them."""
    heads, kv_heads, depth = shape.heads, shape.kv_heads, shape.depth
    rows, group = len(offsets), heads // kv_heads
    width = qkv.shape[1]
    for row in range(first, last):
        position = past + offsets[row]
        for i in range(len(bias)):
            qkv[row, i] += bias[i]
        for head in range(heads):
            normalise_head(qkv, row * width + head * depth, query_norm, shape.eps)
            to = (head // group * rows + row) * group + head % group
            rotate(qkv, row * width + head * depth, rotations, position, queries, to * depth)
        for head in range(kv_heads):
            start = (heads + head) * depth
            normalise_head(qkv, row * width + start, key_norm, shape.eps)
            rotate(qkv, row * width + start, rotations, position, qkv, row * width + start)
            keep_key(keys[head], place + row, qkv[row, start : start + depth])
            start += kv_heads * depth
            keep_value(values[head], place + row, qkv[row, start : start + depth])


class Parts(NamedTuple):
    """First and last block, not included, that a side takes of every matrix."""

    qkv: tuple[int, int]
    output: tuple[int, int]
    gate: tuple[int, int]
    up: tuple[int, int]
    down: tuple[int, int]
    head: tuple[int, int]


@compiled_with(borrows=True)
def part_of(blocks: int, is_halved: bool, side: int) -> tuple[int, int]:
    """What a side takes of some blocks: all where not halved."""
    half = (blocks + 1) // 2 if is_halved else blocks
    return (0, half) if side == 0 else (half, blocks)


@compiled_with(borrows=True)
def queries_of(queries: int, head: int, is_halved: bool, side: int) -> tuple[int, int]:
    """The first query of a head of keys that a side computes, and the one behind its last: all
    where not halved. Who has one more of an odd number changes with the head; side 0 has none of a
    row that side 1 places."""
    if not is_halved:
        return 0, queries
    half = (queries + 1 - head % 2) // 2
    return (0, half) if side == 0 else (half, queries)


@compiled_with(layer_matrices, borrows=True)
def parts_of(weights: Weights, by_columns: bool, side: int) -> Parts:
    """What a side takes of all matrices: the whole where not ``by_columns``."""
    whole = 0 if not by_columns else side
    gates = blocks_of(weights.gate_up) // 2
    gate = part_of(gates, by_columns, whole)
    return Parts(
        part_of(blocks_of(weights.qkv), by_columns, whole),
        part_of(blocks_of(weights.output), by_columns, whole),
        gate,
        (gates + gate[0], gates + gate[1]),
        part_of(blocks_of(weights.down), by_columns, whole),
        part_of(blocks_of(weights.head), by_columns, whole),
    )


__all__ = [
    "Parts",
    "Scratch",
    "Weights",
    "add",
    "gate",
    "normalise",
    "parts_of",
    "place_rows",
    "queries_of",
    "rows_in",
    "stored_dtype",
]
