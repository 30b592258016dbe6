"""The parts of the compiled forward: what it holds, and what each of its steps does to rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.model_options import KvType
from accel.models.cpu import attention as compiled_attention
from accel.models.cpu import kv_scales, matmul
from accel.models.cpu.attention import Floats, Kept, Shape, Stored, keep_key, keep_value, rotate
from accel.models.cpu.kv_scales import scale_down
from accel.models.cpu.layer_matrices import Matrices, blocks_of, is_quantised
from accel.models.cpu.matmul import BLOCK, row_dtype
from accel.models.cpu.quantised.activations import RECORD, Records
from accel.models.cpu.quantised.forms import BLOCK as QUANTISED_BLOCK
from accel.native import simd
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


def kept_dtype(weights: Weights, kv_type: KvType) -> np.dtype[Any]:
    """What keys and values are kept as: int8 where that is wanted, otherwise as weights are, or the
    bits of fp16 where these are quantised."""
    if kv_type == "int8":
        return np.dtype(np.int8)
    dtype = weights.embedding.dtype
    return np.dtype(np.uint16) if is_quantised(weights.embedding) else dtype


class Scratch(NamedTuple):
    """Room for the activations of some rows. records: of those that are multiplied with quantised
    matrices next, ``gated_records`` of the gated ones."""

    x: Floats
    added: Floats
    normed: Stored
    qkv: Floats
    queries: Stored
    attended: Stored
    gate_up: Floats
    gated: Stored
    records: Records
    gated_records: Records

    @classmethod
    def room(cls, rows: int, weights: Weights, shape: Shape, kv_type: KvType) -> Scratch:
        """Room for ``rows`` rows."""
        width = len(weights.norm)
        dtype = np.dtype(np.float32)
        if not is_quantised(weights.embedding):
            dtype = row_dtype(weights.embedding.dtype)
        of_queries = row_dtype(kept_dtype(weights, kv_type))
        attended = shape.heads * shape.depth
        qkv, hidden = blocks_of(weights.qkv) * BLOCK, blocks_of(weights.gate_up) * BLOCK
        wide_rows = (rows, blocks_of(weights.output) * BLOCK)
        has_records = is_quantised(weights.qkv)
        deepest = max(width, attended) if has_records else 0
        gated = hidden // 2 if has_records else 0
        return cls(
            x=empty((rows, width), np.float32),
            added=empty(wide_rows, np.float32),
            normed=empty((rows, width), dtype),
            qkv=empty((rows, qkv), np.float32),
            queries=empty((rows * shape.heads, shape.depth), of_queries),
            attended=empty((rows, attended), dtype),
            gate_up=empty((rows, hidden), np.float32),
            gated=empty((rows, hidden // 2), dtype),
            records=empty((rows, deepest // QUANTISED_BLOCK * RECORD), np.int8),
            gated_records=empty((rows, gated // QUANTISED_BLOCK * RECORD), np.int8),
        )


@compiled_with(simd, borrows=True)
def add(x: Floats, added: Floats, rows: int, first: int, last: int) -> None:
    """Add columns from ``first`` to before ``last`` to the residual stream."""
    for row in range(rows):
        to, start = row * x.shape[1], row * added.shape[1]
        for i in range(first, last, LANES):
            store(x, to + i, load(x, to + i) + load(added, start + i))


@compiled_with(simd, borrows=True)
def normalise(x: Floats, first: int, last: int, weight: Floats, eps: float, normed: Stored) -> None:
    """Write the root mean square norm of rows of the residual stream, to before the last."""
    width, zero = x.shape[1], everywhere(np.float32(0))
    for row in range(first, last):
        start = row * width
        even, odd = zero, zero
        for i in range(0, width, 2 * LANES):
            first, second = load(x, start + i), load(x, start + i + LANES)
            even, odd = multiply_add(first, first, even), multiply_add(second, second, odd)
        mean = total(even + odd) / np.float32(width)
        scale = everywhere(np.float32(1) / np.sqrt(mean + np.float32(eps)))
        for i in range(0, width, LANES):
            store(normed, start + i, load(x, start + i) * scale * load(weight, i))


@compiled_with(simd, borrows=True)
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


@compiled_with(simd, borrows=True)
def gate(gate_up: Floats, gated: Stored, rows: int, first: int, last: int) -> None:
    """silu of the first half times the second, of columns from ``first`` to before ``last`` of
    gated. gate_up: [rows, >= 2 * width]."""
    width = gated.shape[1]
    one, zero = everywhere(np.float32(1)), everywhere(np.float32(0))
    most = everywhere(np.float32(87))
    for row in range(rows):
        start = row * gate_up.shape[1]
        for i in range(first, last, LANES):
            value, other = load(gate_up, start + i), load(gate_up, start + width + i)
            share = value / (one + exponential(smaller(zero - value, most)))
            store(gated, row * width + i, share * other)


@compiled_with(simd, matmul, compiled_attention, kv_scales, borrows=True)
def place_head(
    layer: int,
    head: int,
    qkv: Floats,
    bias: Floats,
    query_norm: Floats,
    key_norm: Floats,
    offsets: NDArray[np.int32],
    past: int,
    shape: Shape,
    rotations: Floats,
    kept: Kept,
    queries: Stored,
) -> None:
    """Add the bias to one head of projected rows; normalise and turn it by the rows' positions
    where it is one of queries or keys. Write it as ``attend`` takes it, a key or a value of the
    layer behind those of ``past`` rows. Heads of queries stand first, then of keys, then of values.
    """
    heads, kv_heads, depth = shape.heads, shape.kv_heads, shape.depth
    rows, group, width = len(offsets), heads // kv_heads, qkv.shape[1]
    start = head * depth
    for row in range(rows):
        position, at = past + offsets[row], row * width + start
        if len(bias) > 0:
            for i in range(start, start + depth):
                qkv[row, i] += bias[i]
        if head < heads:
            normalise_head(qkv, at, query_norm, shape.eps)
            to = (head // group * rows + row) * group + head % group
            rotate(qkv, at, rotations, position, queries, to * depth)
        elif head < heads + kv_heads:
            normalise_head(qkv, at, key_norm, shape.eps)
            rotate(qkv, at, rotations, position, qkv, at)
            kv_head = head - heads
            if kept.key_scales.shape[2] > 0:
                kept.key_scales[layer, kv_head, past + row] = scale_down(qkv, at, depth)
            keep_key(kept.keys[layer, kv_head], past + row, qkv[row, start : start + depth])
        else:
            kv_head = head - heads - kv_heads
            if kept.value_scales.shape[2] > 0:
                kept.value_scales[layer, kv_head, past + row] = scale_down(qkv, at, depth)
            keep_value(kept.values[layer, kv_head], past + row, qkv[row, start : start + depth])


__all__ = [
    "Scratch",
    "Weights",
    "add",
    "gate",
    "kept_dtype",
    "normalise",
    "place_head",
]
