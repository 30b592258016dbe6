"""The layers of the compiled forward, as one thread computes them.

Where two compute halves of the columns they meet after every matrix; where they compute halves of
the rows the second waits for the keys and values of the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu import amx as tiles
from accel.models.cpu import attention as compiled_attention
from accel.models.cpu import barrier as meeting
from accel.models.cpu import layer_matrices, matmul
from accel.models.cpu import parts as compiled_parts
from accel.models.cpu import worker as compiled_side
from accel.models.cpu import worker_handoff as standing_by
from accel.models.cpu.attention import Floats, attend
from accel.models.cpu.barrier import follow_where, meet_where
from accel.models.cpu.layer_matrices import embed, prepare, project
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.parts import (
    Parts,
    Scratch,
    add,
    gate,
    normalise,
    parts_of,
    place_rows,
    queries_of,
    rows_in,
)
from accel.models.cpu.task import Given, Share
from accel.models.cpu.worker import OpenSide
from accel.native import deterministic_sum as sums
from accel.native import simd as lanes
from accel.native.numba_cache import compiled_with

LAYER_MEETINGS = 6
"""How often two threads meet in a layer at most."""

_PARTS = (
    *(lanes, layer_matrices, matmul, compiled_attention, compiled_parts, compiled_side),
    *(meeting, standing_by, sums, tiles),
)


class Part(NamedTuple):
    """What a side computes, and the room that it has for it.

    begin, end: its rows among all; first, last: those of them whose keys it places; room: of its
    rows; blocks: of every matrix; offsets, mask: of its rows, see ``rows.Rows``; past: committed
    rows before all; by_columns, is_shared: whether the other has the other columns, or anything;
    side: 0 or 1.
    """

    begin: int
    end: int
    first: int
    last: int
    room: Scratch
    blocks: Parts
    offsets: NDArray[np.int32]
    mask: Floats
    past: int
    by_columns: bool
    is_shared: bool
    side: int


@compiled_with(compiled_parts, compiled_side, borrows=True, forceinline=True, inner=True)
def part_of(given: Given, share: Share, own: OpenSide, whole: Scratch, side: int) -> Part:
    """The part that a side's share is. whole: the room of all rows."""
    rows, by_columns = len(given.tokens), share.by_columns
    begin, end = (0, rows) if by_columns else (share.first, share.last)
    return Part(
        begin,
        end,
        share.first - begin,
        share.last - begin,
        rows_in(whole, begin, end, own.shape.heads),
        parts_of(own.weights, by_columns, side),
        given.offsets[begin:end],
        given.mask[begin:end],
        given.past,
        by_columns,
        by_columns or end - begin < rows,
        side,
    )


@compiled_with(
    *(compiled_parts, compiled_side, layer_matrices, matmul),
    borrows=True,
    forceinline=True,
    inner=True,
)
def begin_rows(given: Given, part: Part, own: OpenSide) -> None:
    """Write what the first layer is given."""
    embed(given.tokens[part.begin : part.end], own.weights.embedding, part.room.x)


@compiled_with(*_PARTS, borrows=True, forceinline=True, inner=True)
def attention(
    layer: int, part: Part, own: OpenSide, meeting: NDArray[np.int64], number: int
) -> int:
    """Add what attention does; returns the number of the last meeting."""
    weights, shape, room = own.weights, own.shape, part.room
    by_columns, side, rows = part.by_columns, part.side, part.end - part.begin
    norm = weights.attention_norm[layer]
    normalise(room.x, rows, norm, shape.eps, room.normed)
    prepare(room.normed, rows, weights.qkv, room.records)
    blocks, column = part.blocks.qkv, part.blocks.qkv[0] * BLOCK
    project(room.normed, 0, rows, weights.qkv, layer, blocks, room.qkv, column, room.records)
    number = meet_where(by_columns, meeting, side, number)
    place_rows(
        room.qkv,
        weights.qkv_bias[layer],
        weights.query_norm[layer],
        weights.key_norm[layer],
        part.offsets,
        part.first,
        part.last,
        part.past + part.begin,
        part.past,
        shape,
        own.rotations,
        own.kept.keys[layer],
        own.kept.values[layer],
        room.queries,
    )
    number = follow_where(part.is_shared, meeting, side, number)
    for head in range(shape.kv_heads):
        queries = rows * shape.heads // shape.kv_heads
        first_query, last_query = queries_of(queries, head, by_columns, side)
        attend(
            room.queries,
            own.key_words[layer, head],
            own.value_words[layer, head],
            part.mask,
            part.offsets,
            part.begin,
            part.past,
            shape,
            head,
            first_query,
            last_query,
            own.room,
            room.attended,
        )
    number = meet_where(by_columns, meeting, side, number)
    prepare(room.attended, rows, weights.output, room.records)
    blocks, column = part.blocks.output, part.blocks.output[0] * BLOCK
    project(room.attended, 0, rows, weights.output, layer, blocks, room.added, column, room.records)
    number = meet_where(by_columns, meeting, side, number)
    add(room.x, room.added, rows)
    return number


@compiled_with(*_PARTS, borrows=True, forceinline=True, inner=True)
def gated_unit(
    layer: int, part: Part, own: OpenSide, meeting: NDArray[np.int64], number: int
) -> int:
    """Add what the gated linear unit does; returns the number of the last meeting."""
    weights, room, blocks = own.weights, part.room, part.blocks
    rows, norm = part.end - part.begin, weights.mlp_norm[layer]
    normalise(room.x, rows, norm, own.shape.eps, room.normed)
    prepare(room.normed, rows, weights.gate_up, room.records)
    for half in (blocks.gate, blocks.up):
        column = half[0] * BLOCK
        project(
            *(room.normed, 0, rows, weights.gate_up, layer, half, room.gate_up, column),
            room.records,
        )
    gate(room.gate_up, room.gated, blocks.gate[0] * BLOCK, blocks.gate[1] * BLOCK)
    number = meet_where(part.by_columns, meeting, part.side, number)
    prepare(room.gated, rows, weights.down, room.records)
    column = blocks.down[0] * BLOCK
    project(
        *(room.gated, 0, rows, weights.down, layer, blocks.down, room.added, column),
        room.records,
    )
    number = meet_where(part.by_columns, meeting, part.side, number)
    add(room.x, room.added, rows)
    return number


__all__ = ["LAYER_MEETINGS", "Part", "attention", "begin_rows", "gated_unit", "part_of"]
