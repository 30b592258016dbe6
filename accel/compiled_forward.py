"""The forward of a small decoder built like Llama, as one compiled function for a CPU core.

With nine million parameters a forward reads 18 MB, which takes a core half a millisecond; calling
some two hundred operations of a library takes longer. Activations are fp32 throughout. Keys and
values lie as ``matmul`` wants its matrices, so attention is the same product of few rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel import compiled_paths, matmul
from accel.compiled_paths import Paths, PathScratch, add_path
from accel.matmul import BLOCK, TILE_ROWS, Packed, float_of, multiply, narrow, wide
from accel.rows import BLOCKED
from accel.sources.compiled import compiled_with

Floats = NDArray[np.float32]
Stored = NDArray[Any]
"""Numbers as the model's dtype has them: float32, or the bits of bf16 as int16."""


STEP = 64
"""Columns of keys come in multiples: what is left over would be done one by one."""


class Weights(NamedTuple):
    """Matrices are ``matmul.packed``, those of layers with the layer as first index.

    embedding: stored [vocabulary, width]; norms: float32 [layers, width], the last [width].
    """

    embedding: Stored
    attention_norm: Floats
    qkv: Packed
    output: Packed
    mlp_norm: Floats
    gate_up: Packed
    down: Packed
    norm: Floats
    head: Packed


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
    depth x position; values: [layers, kv_heads, depth / 32, capacity, 32]. Of bf16, pairs along
    depth (keys) and position (values) stand together: int16 with half the third-last and twice
    the last size.
    """

    keys: Stored
    values: Stored


class Scratch(NamedTuple):
    """Room for the activations of some rows; ``scores`` and ``shares`` for one tile of queries."""

    x: Floats
    added: Floats
    normed: Stored
    qkv: Floats
    queries: Stored
    attended: Stored
    gate_up: Floats
    gated: Stored
    scores: Floats
    shares: Stored
    tile: Floats

    @classmethod
    def room(cls, rows: int, columns: int, weights: Weights, shape: Shape) -> Scratch:
        """Room for ``rows`` rows over ``columns`` columns of keys (a multiple of ``STEP``)."""
        width = weights.embedding.shape[1]
        dtype = weights.embedding.dtype
        attended = shape.heads * shape.depth
        qkv, hidden = weights.qkv.shape[1] * BLOCK, weights.gate_up.shape[1] * BLOCK
        wide_rows = (rows, weights.output.shape[1] * BLOCK)
        return cls(
            x=np.empty((rows, width), np.float32),
            added=np.empty(wide_rows, np.float32),
            normed=np.empty((rows, width), dtype),
            qkv=np.empty((rows, qkv), np.float32),
            queries=np.empty((rows * shape.heads, shape.depth), dtype),
            attended=np.empty((rows, attended), dtype),
            gate_up=np.empty((rows, hidden), np.float32),
            gated=np.empty((rows, hidden // 2), dtype),
            scores=np.empty((TILE_ROWS, columns), np.float32),
            shares=np.empty((TILE_ROWS, columns), dtype),
            tile=np.empty((TILE_ROWS, shape.depth), np.float32),
        )


_LOG2_E = np.float32(1.4426950408889634)
_TAYLOR = tuple(np.float32(np.log(2.0) ** n / f) for n, f in enumerate((1, 1, 2, 6, 24, 120, 720)))
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = _TAYLOR
_LEAST, _MOST = np.float32(-126), np.float32(126)
_SHIFT, _ROUND = np.float32(128), np.float32(128.5)
_ONE = np.float32(1)


@njit(nogil=True, cache=True, inline="always")
def exponential(x: float) -> float:
    """exp(x) in fp32, within 3e-7, in operations that are done on many numbers at once."""
    power = min(max(x * _LOG2_E, _LEAST), _MOST)
    whole = np.int32(power + _ROUND)
    rest = power - (np.float32(whole) - _SHIFT)
    value = _C4 + rest * (_C5 + rest * _C6)
    value = _C0 + rest * (_C1 + rest * (_C2 + rest * (_C3 + rest * value)))
    return value * float_of((whole - np.int32(1)) << np.int32(23))


@compiled_with(matmul, fastmath=True)
def add_and_normalise(
    x: Floats, added: Floats, rows: int, weight: Floats, eps: float, normed: Stored
) -> None:
    """Add to the residual stream; write its root mean square norm."""
    width = x.shape[1]
    for row in range(rows):
        total = np.float32(0)
        for i in range(width):
            value = x[row, i] + added[row, i]
            x[row, i] = value
            total += value * value
        scale = _ONE / np.sqrt(total / np.float32(width) + np.float32(eps))
        for i in range(width):
            normed[row, i] = narrow(x[row, i] * scale * weight[i], normed)


@compiled_with(matmul, fastmath=True)
def rotate(vector: Floats, cos: Floats, sin: Floats) -> None:
    """Turn a head's numbers by its position, in place (rotate_half)."""
    half = len(cos)
    left, right = vector[:half], vector[half:]
    for i in range(half):
        first, second = left[i], right[i]
        left[i] = first * cos[i] - second * sin[i]
        right[i] = second * cos[i] + first * sin[i]


@compiled_with(matmul)
def keep_key(keys: Stored, place: int, vector: Floats) -> None:
    """Write a head's key for a position. keys: of one layer and head."""
    pair = keys.shape[2] // BLOCK
    block, column = place // BLOCK, pair * (place % BLOCK)
    for i in range(len(vector) // pair):
        for odd in range(pair):
            keys[block, i, column + odd] = narrow(vector[pair * i + odd], keys)


@compiled_with(matmul)
def keep_value(values: Stored, place: int, vector: Floats) -> None:
    """Write a head's value for a position. values: of one layer and head."""
    pair = values.shape[2] // BLOCK
    row, odd = place // pair, place % pair
    for block in range(len(vector) // BLOCK):
        for i in range(BLOCK):
            values[block, row, pair * i + odd] = narrow(vector[block * BLOCK + i], values)


@compiled_with(matmul)
def move(kept: Kept, sources: NDArray[np.int64], first: int) -> None:
    """Copy keys and values of positions, in ascending order, to those from ``first`` on."""
    keys, values = kept.keys, kept.values
    pair = keys.shape[4] // BLOCK
    for row in range(len(sources)):
        source, target = sources[row], first + row
        column, place = source % BLOCK * pair, target % BLOCK * pair
        old, new = source % pair, target % pair
        for layer in range(keys.shape[0]):
            for head in range(keys.shape[1]):
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


@compiled_with(matmul, fastmath=True)
def write_shares(
    scores: Floats, end: int, mask: Floats, past: int, scaling: float, shares: Stored
) -> float:
    """Write exp(score - highest) of the columns before ``end``, next to nothing up to a multiple
    of ``STEP``; returns the sum.

    mask: float32 [end - past], whose negative columns are left out.
    """
    scale = np.float32(scaling)
    for column in range(len(mask)):
        if mask[column] < 0:
            scores[past + column] = BLOCKED
    columns = (end + STEP - 1) // STEP * STEP
    for column in range(end, columns):
        scores[column] = BLOCKED
    lanes = np.full(STEP, BLOCKED, np.float32)
    for first in range(0, columns, STEP):
        for lane in range(STEP):
            lanes[lane] = max(lanes[lane], scores[first + lane])
    highest = lanes.max()
    total = np.float32(0)
    for column in range(columns):
        share = exponential((scores[column] - highest) * scale)
        total += share
        shares[column] = narrow(share, shares)
    return total


@compiled_with(matmul)
def attend(
    keys: Packed,
    values: Packed,
    mask: Floats,
    past: int,
    shape: Shape,
    head: int,
    scratch: Scratch,
) -> None:
    """Write what the queries of one head of keys take from the values. keys, values: of it."""
    rows = len(mask)
    end = past + rows
    group = shape.heads // shape.kv_heads
    depth = keys.shape[1]
    pair = shape.depth // depth
    blocks = (end + BLOCK - 1) // BLOCK
    queries, attended = scratch.queries, scratch.attended
    for first in range(0, rows * group, TILE_ROWS):
        count = min(rows * group - first, TILE_ROWS)
        multiply(
            queries,
            head * rows * group + first,
            count,
            keys,
            blocks,
            depth,
            scratch.scores,
        )
        for i in range(count):
            row = (first + i) // group
            total = write_shares(
                scratch.scores[i], end, mask[row], past, shape.scaling, scratch.shares[i]
            )
            # What is left after the product is a division by the sum.
            scratch.scores[i, 0] = _ONE / total
        multiply(
            scratch.shares, 0, count, values, len(values), blocks * BLOCK // pair, scratch.tile
        )
        for i in range(count):
            row, member = (first + i) // group, (first + i) % group
            start = (head * group + member) * shape.depth
            scale = scratch.scores[i, 0]
            for j in range(shape.depth):
                attended[row, start + j] = narrow(scratch.tile[i, j] * scale, attended)


@compiled_with(matmul, fastmath=True, error_model="numpy")
def gate(gate_up: Floats, rows: int, gated: Stored) -> None:
    """silu of the first half times the second."""
    width = gated.shape[1]
    halves = gate_up.reshape(-1, width)
    for row in range(rows):
        for i in range(width):
            value = halves[2 * row, i]
            share = value / (_ONE + exponential(-value))
            gated[row, i] = narrow(share * halves[2 * row + 1, i], gated)


@compiled_with(matmul, compiled_paths)
def forward(
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int32],
    mask: Floats,
    past: int,
    weights: Weights,
    shape: Shape,
    rotations: Floats,
    kept: Kept,
    key_words: Packed,
    value_words: Packed,
    scratch: Scratch,
    first_mask: int,
    mask_inputs: Floats,
    paths: Paths,
    path_scratch: PathScratch,
    logits: Floats,
) -> None:
    """Compute rows after ``past`` committed ones; see ``rows.Rows`` for the first three.

    rotations: float32 [positions, 2, depth / 2], cosine and sine; ``key_words``, ``value_words``:
    what is kept as ``multiply`` takes it; logits: float32 [wanted, >= vocabulary], of the last
    rows, written. Rows from ``first_mask`` on are mask rows: ``mask_inputs`` float32 [masks, width]
    stand for their tokens, and ``paths`` are added for them alone.
    """
    rows, width = len(tokens), weights.embedding.shape[1]
    masks = len(mask_inputs) if len(paths.qkv_down) else 0
    heads, kv_heads, depth = shape.heads, shape.kv_heads, shape.depth
    group = heads // kv_heads
    x, added, normed, qkv = scratch.x, scratch.added, scratch.normed, scratch.qkv
    for row in range(rows):
        for i in range(width):
            x[row, i] = wide(weights.embedding[tokens[row], i])
            added[row, i] = 0
    for row in range(len(mask_inputs)):
        x[first_mask + row] = mask_inputs[row]
    for layer in range(len(weights.qkv)):
        add_and_normalise(x, added, rows, weights.attention_norm[layer], shape.eps, normed)
        matrix = weights.qkv[layer]
        multiply(normed, 0, rows, matrix, len(matrix), matrix.shape[1], qkv)
        if masks:
            down, up = paths.qkv_down[layer], paths.qkv_up[layer]
            add_path(normed, first_mask, masks, down, up, path_scratch, qkv)
        for row in range(rows):
            cos, sin = rotations[past + offsets[row], 0], rotations[past + offsets[row], 1]
            for head in range(heads + kv_heads):
                rotate(qkv[row, head * depth : (head + 1) * depth], cos, sin)
            for head in range(heads):
                query = scratch.queries[(head // group * rows + row) * group + head % group]
                for i in range(depth):
                    query[i] = narrow(qkv[row, head * depth + i], query)
            for head in range(kv_heads):
                start = (heads + head) * depth
                keep_key(kept.keys[layer, head], past + row, qkv[row, start : start + depth])
                start += kv_heads * depth
                keep_value(kept.values[layer, head], past + row, qkv[row, start : start + depth])
        for head in range(kv_heads):
            attend(
                key_words[layer, head],
                value_words[layer, head],
                mask,
                past,
                shape,
                head,
                scratch,
            )
        matrix = weights.output[layer]
        multiply(scratch.attended, 0, rows, matrix, len(matrix), matrix.shape[1], added)
        if masks:
            down, up = paths.output_down[layer], paths.output_up[layer]
            add_path(scratch.attended, first_mask, masks, down, up, path_scratch, added)
        add_and_normalise(x, added, rows, weights.mlp_norm[layer], shape.eps, normed)
        matrix = weights.gate_up[layer]
        multiply(normed, 0, rows, matrix, len(matrix), matrix.shape[1], scratch.gate_up)
        if masks:
            down, up = paths.gate_up_down[layer], paths.gate_up_up[layer]
            add_path(normed, first_mask, masks, down, up, path_scratch, scratch.gate_up)
        gate(scratch.gate_up, rows, scratch.gated)
        matrix = weights.down[layer]
        multiply(scratch.gated, 0, rows, matrix, len(matrix), matrix.shape[1], added)
        if masks:
            down, up = paths.down_down[layer], paths.down_up[layer]
            add_path(scratch.gated, first_mask, masks, down, up, path_scratch, added)
    wanted = len(logits)
    if wanted:
        first = rows - wanted
        add_and_normalise(x[first:], added[first:], wanted, weights.norm, shape.eps, normed)
        multiply(normed, 0, wanted, weights.head, len(weights.head), weights.head.shape[1], logits)
