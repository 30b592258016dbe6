"""The parts of the compiled forward: what it holds, and what each of its steps does to rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu import attention as compiled_attention
from accel.models.cpu import matmul
from accel.models.cpu.attention import Floats, Shape, Stored, keep_key, keep_value, rotate
from accel.models.cpu.matmul import BLOCK, Packed, multiply, row_dtype
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
    """Matrices are ``matmul.packed``, those of layers with the layer as first index.

    embedding: stored [vocabulary, width]; norms: float32 [layers, width], the last [width];
    qkv_bias: float32 [layers, out], [layers, 0] where there is none.
    """

    embedding: Stored
    attention_norm: Floats
    qkv: Packed
    qkv_bias: Floats
    output: Packed
    mlp_norm: Floats
    gate_up: Packed
    down: Packed
    norm: Floats
    head: Packed


class Scratch(NamedTuple):
    """Room for the activations of some rows."""

    x: Floats
    added: Floats
    normed: Stored
    qkv: Floats
    queries: Stored
    attended: Stored
    gate_up: Floats
    gated: Stored

    @classmethod
    def room(cls, rows: int, weights: Weights, shape: Shape) -> Scratch:
        """Room for ``rows`` rows."""
        width = weights.embedding.shape[1]
        dtype = row_dtype(weights.embedding.dtype)
        attended = shape.heads * shape.depth
        qkv, hidden = weights.qkv.shape[1] * BLOCK, weights.gate_up.shape[1] * BLOCK
        wide_rows = (rows, weights.output.shape[1] * BLOCK)
        return cls(
            x=empty((rows, width), np.float32),
            added=empty(wide_rows, np.float32),
            normed=empty((rows, width), dtype),
            qkv=empty((rows, qkv), np.float32),
            queries=empty((rows * shape.heads, shape.depth), dtype),
            attended=empty((rows, attended), dtype),
            gate_up=empty((rows, hidden), np.float32),
            gated=empty((rows, hidden // 2), dtype),
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
    """Add the bias to projected rows from ``first`` to before ``last``, turn their queries and keys
    by their positions; write the keys and values of one layer, those of the first of all rows at
    ``place``, and the queries as ``attend`` takes them."""
    heads, kv_heads, depth = shape.heads, shape.kv_heads, shape.depth
    rows, group = len(offsets), heads // kv_heads
    width = qkv.shape[1]
    for row in range(first, last):
        position = past + offsets[row]
        for i in range(len(bias)):
            qkv[row, i] += bias[i]
        for head in range(heads):
            to = (head // group * rows + row) * group + head % group
            rotate(qkv, row * width + head * depth, rotations, position, queries, to * depth)
        for head in range(kv_heads):
            start = (heads + head) * depth
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


@compiled_with(borrows=True)
def parts_of(weights: Weights, by_columns: bool, side: int) -> Parts:
    """What a side takes of all matrices: the whole where not ``by_columns``."""
    whole = 0 if not by_columns else side
    gates = weights.gate_up.shape[1] // 2
    gate = part_of(gates, by_columns, whole)
    return Parts(
        part_of(weights.qkv.shape[1], by_columns, whole),
        part_of(weights.output.shape[1], by_columns, whole),
        gate,
        (gates + gate[0], gates + gate[1]),
        part_of(weights.down.shape[1], by_columns, whole),
        part_of(len(weights.head), by_columns, whole),
    )


@compiled_with(lanes, borrows=True)
def embed(tokens: NDArray[np.int32], embedding: Stored, x: Floats) -> None:
    """Begin the residual stream."""
    width = embedding.shape[1]
    for row in range(len(tokens)):
        for i in range(0, width, LANES):
            store(x, row * width + i, load(embedding, tokens[row] * width + i))


@compiled_with(lanes, matmul, borrows=True)
def project(
    inputs: Stored, matrices: Packed, layer: int, output: Floats, blocks: tuple[int, int]
) -> None:
    """Rows through some ``blocks`` of a layer's matrix."""
    first, last = blocks
    matrix = matrices[layer, first:last]
    multiply(inputs, 0, len(inputs), matrix, last - first, matrix.shape[1], output, first * BLOCK)


__all__ = [
    "Parts",
    "Scratch",
    "Weights",
    "add",
    "embed",
    "gate",
    "normalise",
    "parts_of",
    "place_rows",
    "project",
    "queries_of",
    "rows_in",
]
