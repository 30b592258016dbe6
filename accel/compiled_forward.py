"""The forward of a small decoder built like Llama, as one compiled function.

With nine million parameters a forward reads 18 MB, which takes a core half a millisecond; calling
some two hundred operations of a library takes longer. Activations are fp32 throughout. Two threads
may compute a forward. Of many rows each takes half through all layers; a row attends none that is
behind it, so the second waits for the first where a layer's keys and values are written. Of fewer rows that would be to read all weights twice: each
takes half of the columns of every matrix, half of the rows of attention alone, and they meet after
each. A row's numbers depend neither on the other rows of a forward nor on the thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel import compiled_attention, compiled_head, compiled_paths, lanes, matmul, meeting
from accel.compiled_attention import (
    Floats,
    Kept,
    Room,
    Shape,
    Stored,
    attend,
    keep_key,
    keep_value,
    rotate,
)
from accel.compiled_head import Found, WalkRoom, walk
from accel.compiled_paths import Paths, PathScratch, add_path
from accel.draft_tree import TokenArray
from accel.lanes import LANES, everywhere, exponential, load, smaller, store
from accel.matmul import BLOCK, Packed, multiply, narrow, wide
from accel.meeting import follow_where, linger, meet_where
from accel.sources.compiled import compiled_with

MEETINGS = 6
"""How often two threads meet in a layer at most."""


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
        )


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
        scale = np.float32(1) / np.sqrt(total / np.float32(width) + np.float32(eps))
        for i in range(width):
            normed[row, i] = narrow(x[row, i] * scale * weight[i], normed)


@compiled_with(lanes)
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


@compiled_with(lanes, matmul, compiled_attention)
def place_rows(
    qkv: Floats,
    offsets: NDArray[np.int32],
    place: int,
    past: int,
    shape: Shape,
    rotations: Floats,
    keys: Stored,
    values: Stored,
    queries: Stored,
) -> None:
    """Turn queries and keys of projected rows by their positions; write the keys and values of one
    layer from ``place`` on, and the queries as ``attend`` takes them."""
    heads, kv_heads, depth = shape.heads, shape.kv_heads, shape.depth
    rows, group = len(offsets), heads // kv_heads
    width = qkv.shape[1]
    for row in range(rows):
        position = past + offsets[row]
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


@compiled_with()
def part_of(blocks: int, is_halved: bool, side: int) -> tuple[int, int]:
    """What a side takes of some blocks: all where not halved."""
    half = (blocks + 1) // 2 if is_halved else blocks
    return (0, half) if side == 0 else (half, blocks)


@compiled_with()
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


@compiled_with(matmul)
def embed(tokens: NDArray[np.int32], embedding: Stored, x: Floats, added: Floats) -> None:
    """Begin the residual stream, to which nothing is added yet."""
    for row in range(len(tokens)):
        for i in range(embedding.shape[1]):
            x[row, i] = wide(embedding[tokens[row], i])
            added[row, i] = 0


@compiled_with(lanes, matmul, compiled_paths)
def project(
    inputs: Stored,
    matrices: Packed,
    layer: int,
    output: Floats,
    blocks: tuple[int, int],
    first_mask: int,
    masks: int,
    downs: Packed,
    ups: Packed,
    path_scratch: PathScratch,
) -> None:
    """Rows through some ``blocks`` of a layer's matrix, and mask rows through their path beside
    it."""
    first, last = blocks
    matrix = matrices[layer, first:last]
    multiply(inputs, 0, len(inputs), matrix, last - first, matrix.shape[1], output, first * BLOCK)
    if masks > 0:
        down, up = downs[layer], ups[layer]
        add_path(inputs, first_mask, masks, down, up, path_scratch, output, first, last)


@compiled_with(lanes, matmul, compiled_attention, compiled_head, compiled_paths, meeting)
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
    first_mask: int,
    mask_inputs: Floats,
    paths: Paths,
    logits: Floats,
    parents: TokenArray,
    walks: bool,
    vocabulary: int,
    found: Found,
    by_columns: bool,
    first: int,
    last: int,
    scratch: Scratch,
    room: Room,
    path_scratch: PathScratch,
    walk_room: WalkRoom,
    meeting: NDArray[np.int64],
    side: int,
    number: int,
) -> int:
    """Compute rows after ``past`` committed ones; see ``rows.Rows`` for the first three.

    rotations: float32 [positions, 2, depth / 2], cosine and sine; ``key_words``, ``value_words``:
    what is kept as ``multiply`` takes it; logits: float32 [wanted, >= vocabulary], of the last
    rows, written. Rows from ``first_mask`` on are mask rows: ``mask_inputs`` float32 [masks, width]
    stand for their tokens, and ``paths`` are added for them alone.

    Where it ``walks``, logits of mask rows alone are written, and the walk along the tree of
    ``parents``, whose root and nodes stand before them, is left in ``walk_room``; returns how many
    tokens it chose.

    This call computes the rows from ``first`` to before ``last``. Where those are not all, another
    thread computes the others: side 1 waits for the keys and values of side 0 in every layer, and
    both meet at the end, by the numbers after ``number``. ``by_columns`` the rows are those of attention alone, and
    each side has its own ``x``, ``normed`` and ``gate_up``.
    """
    is_shared = last - first < len(tokens)
    begin, end = (0, len(tokens)) if by_columns else (first, last)
    rows = end - begin
    x, added, normed = scratch.x[begin:end], scratch.added[begin:end], scratch.normed[begin:end]
    qkv, gate_up = scratch.qkv[begin:end], scratch.gate_up[begin:end]
    attended, gated = scratch.attended[begin:end], scratch.gated[begin:end]
    queries = scratch.queries[first * shape.heads : last * shape.heads]
    own_qkv, own_attended = scratch.qkv[first:last], scratch.attended[first:last]
    own_offsets, own_mask = offsets[first:last], mask[first:last]
    parts = parts_of(weights, by_columns, side)
    embed(tokens[begin:end], weights.embedding, x, added)
    mask_row = max(first_mask - begin, 0)
    masks = min(max(first_mask + len(mask_inputs) - begin, 0), rows) - mask_row
    for row in range(masks):
        given = begin + mask_row + row - first_mask
        for i in range(x.shape[1]):
            x[mask_row + row, i] = mask_inputs[given, i]
    if len(paths.qkv_down) == 0:
        masks = 0
    for layer in range(len(weights.qkv)):
        add_and_normalise(x, added, rows, weights.attention_norm[layer], shape.eps, normed)
        project(
            normed,
            weights.qkv,
            layer,
            qkv,
            parts.qkv,
            mask_row,
            masks,
            paths.qkv_down,
            paths.qkv_up,
            path_scratch,
        )
        number = meet_where(by_columns, meeting, side, number)
        keys, values, place = kept.keys[layer], kept.values[layer], past + first
        place_rows(own_qkv, own_offsets, place, past, shape, rotations, keys, values, queries)
        number = follow_where(is_shared, meeting, side, number)
        for head in range(shape.kv_heads):
            attend(
                queries,
                key_words[layer, head],
                value_words[layer, head],
                own_mask,
                first,
                past,
                shape,
                head,
                room,
                own_attended,
            )
        number = meet_where(by_columns, meeting, side, number)
        project(
            attended,
            weights.output,
            layer,
            added,
            parts.output,
            mask_row,
            masks,
            paths.output_down,
            paths.output_up,
            path_scratch,
        )
        number = meet_where(by_columns, meeting, side, number)
        add_and_normalise(x, added, rows, weights.mlp_norm[layer], shape.eps, normed)
        project(
            normed,
            weights.gate_up,
            layer,
            gate_up,
            parts.gate,
            mask_row,
            masks,
            paths.gate_up_down,
            paths.gate_up_up,
            path_scratch,
        )
        project(
            normed,
            weights.gate_up,
            layer,
            gate_up,
            parts.up,
            mask_row,
            masks,
            paths.gate_up_down,
            paths.gate_up_up,
            path_scratch,
        )
        gate(gate_up, gated, parts.gate[0] * BLOCK, parts.gate[1] * BLOCK)
        number = meet_where(by_columns, meeting, side, number)
        project(
            gated,
            weights.down,
            layer,
            added,
            parts.down,
            mask_row,
            masks,
            paths.down_down,
            paths.down_up,
            path_scratch,
        )
        number = meet_where(by_columns, meeting, side, number)
    wanted_from = len(tokens) - len(logits) - (len(parents) + 1 if walks else 0)
    skipped = max(wanted_from - begin, 0)
    wanted = rows - skipped
    if wanted > 0:
        add_and_normalise(
            x[skipped:], added[skipped:], wanted, weights.norm, shape.eps, normed[skipped:]
        )
        if not walks:
            matrix = weights.head[parts.head[0] : parts.head[1]]
            written, at = logits[begin + skipped - wanted_from :], parts.head[0] * BLOCK
            multiply(normed, skipped, wanted, matrix, len(matrix), matrix.shape[1], written, at)
    number = meet_where(is_shared, meeting, side, number)
    count = 0
    if walks:
        count = walk(
            scratch.normed[wanted_from:],
            tokens[wanted_from:],
            parents,
            weights.head,
            vocabulary,
            walk_room,
            found,
            logits,
            is_shared,
            meeting,
            side,
            number,
        )
    if is_shared:
        linger(side)
    return count
