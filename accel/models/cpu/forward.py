"""The forward of a small decoder built like Llama, as one compiled function.

With nine million parameters a forward reads 18 MB, which takes a core half a millisecond; calling
some two hundred operations of a library takes longer. Activations are fp32 throughout. Two threads
may compute a forward. Of many rows each takes half through all layers; a row attends none that is
behind it, so the second waits for the first where a layer's keys and values are written. Of fewer
rows that would be to read all weights twice: each takes half of the columns of every matrix, half
of the queries of attention, and they meet after each. A row's numbers depend neither on the
other rows of a forward, nor on the thread, nor on where the rows stand that it attends: to the last
bit they are those of plain decoding, so the text is, in bf16 and where tokens are drawn, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.models.cpu import attention as compiled_attention
from accel.models.cpu import barrier as meeting
from accel.models.cpu import layer_matrices, matmul
from accel.models.cpu import layers as compiled_layers
from accel.models.cpu import lm_head as compiled_head
from accel.models.cpu import parts as compiled_parts
from accel.models.cpu import worker as compiled_side
from accel.models.cpu import worker_handoff as standing_by
from accel.models.cpu.attention import Floats
from accel.models.cpu.barrier import await_done, linger, meet_where, note_done, stand_by
from accel.models.cpu.layer_matrices import prepare, project
from accel.models.cpu.layers import (
    LAYER_MEETINGS,
    Part,
    attention,
    begin_rows,
    gated_unit,
    part_of,
)
from accel.models.cpu.lm_head import walk
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.parts import Scratch, normalise
from accel.models.cpu.task import Given, Share, Wanted
from accel.models.cpu.worker import OpenSide, opened
from accel.models.cpu.worker_handoff import hand_over, taken
from accel.native import deterministic_sum as sums
from accel.native import simd as lanes
from accel.native.numba_cache import compiled_with

COLUMN_ROWS = 64
"""Rows up to which two threads take half of the columns each, and half of the rows where there are
more."""

UNEVEN = 64
"""The first thread begins earlier by the time of a row, and its rows do not attend those of the
second: it takes one row more, and another for each of so many."""


@compiled_with(borrows=True)
def shares_of(rows: int) -> tuple[bool, int]:
    """How two threads share so many rows: whether by columns, and rows of the first."""
    if rows <= COLUMN_ROWS:
        return True, (rows + 1) // 2
    return False, rows // 2 + 1 + rows // UNEVEN


@compiled_with(borrows=True)
def meetings_of(layers: int, rows: int) -> int:
    """How often two threads meet in a forward at most."""
    return LAYER_MEETINGS * layers + 1 + rows


_PARTS = (
    *(lanes, matmul, compiled_attention, compiled_head, compiled_layers, compiled_parts),
    *(compiled_side, layer_matrices, meeting, standing_by, sums),
)


@compiled_with(*_PARTS)
def forward(
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int32],
    mask: Floats,
    past: int,
    logits: Floats,
    parents: TokenArray,
    walks: bool,
    by_columns: bool,
    stands_by: bool,
    first: int,
    last: int,
    own: Any,
    meeting: NDArray[np.int64],
    side: int,
    number: int,
) -> int:
    """``forward_at``, of a ``Side``: see ``Given``, ``Wanted`` and ``Share``, which Python would
    take as long to hand over as all they hold."""
    count: int = forward_at(
        Given(tokens, offsets, mask, past),
        Wanted(logits, parents, walks),
        Share(by_columns, first, last),
        stands_by,
        opened(own),
        meeting,
        side,
        number,
    )
    return count


@compiled_with(*_PARTS, borrows=True, inner=True)
def forward_at(
    given: Given,
    wanted: Wanted,
    share: Share,
    stands_by: bool,
    own: OpenSide,
    meeting: NDArray[np.int64],
    side: int,
    number: int,
) -> int:
    """Compute a ``share`` of a forward; returns how many tokens its walk chose, which stand in the
    side's ``walk_room``, and its path. own: the side that computes.

    Where the share is not all, another thread computes the rest: side 1 waits for the keys and
    values of side 0 in every layer, and both meet at the end, by the numbers after ``number``.

    Where it ``stands_by``, side 0 hands over a ``Job``, and side 1 computes one after another of
    these, whatever it was called with, until it is wanted no more.
    """
    if stands_by and side == 0:
        others = Share(share.by_columns, share.last, len(given.tokens))
        hand_over(own.job, given, wanted, others, meeting, number)
    elif side == 0:
        # The other thread may have lost its core while it looked at what both share.
        await_done(meeting)
    while True:
        if stands_by and side == 1:
            if not stand_by(meeting):
                return 0
            given, wanted, share, number = taken(own.job)
        scratch = own.column_scratch if share.by_columns else own.row_scratch
        part = part_of(given, share, own, scratch, side)
        begin_rows(given, part, own)
        for layer in range(len(own.weights.qkv)):
            number = attention(layer, part, own, meeting, number)
            number = gated_unit(layer, part, own, meeting, number)
        count = _find(given, wanted, part, own, scratch, meeting, number)
        if stands_by and side == 1:
            note_done(meeting)
            continue
        if part.is_shared:
            linger(side)
        return count


@compiled_with(*_PARTS, borrows=True, forceinline=True, inner=True)
def _find(
    given: Given,
    wanted: Wanted,
    part: Part,
    own: OpenSide,
    scratch: Scratch,
    meeting: NDArray[np.int64],
    number: int,
) -> int:
    """Write the logits that are wanted of what the last layer left, or walk; returns how many
    tokens were chosen. scratch: the room of all rows."""
    weights, room, logits, parents = own.weights, part.room, wanted.logits, wanted.parents
    first = len(given.tokens) - len(logits) - (len(parents) + 1 if wanted.walks else 0)
    skipped = max(first - part.begin, 0)
    rows = part.end - part.begin - skipped
    if rows > 0:
        x, normed = room.x[skipped:], room.normed[skipped:]
        normalise(x, rows, weights.norm, own.shape.eps, normed)
        if not wanted.walks:
            blocks, written = part.blocks.head, logits[part.begin + skipped - first :]
            prepare(normed, rows, weights.head, room.records)
            column = blocks[0] * BLOCK
            project(normed, 0, rows, weights.head, 0, blocks, written, column, room.records)
    number = meet_where(part.is_shared, meeting, part.side, number)
    if not wanted.walks:
        return 0
    count: int = walk(
        *(scratch.normed[first:], given.tokens[first:], parents, weights.head, own.vocabulary),
        *(own.walk_room, own.found, part.is_shared),
        *(meeting, part.side, number),
    )
    return count


__all__ = ["COLUMN_ROWS", "forward", "forward_at", "meetings_of", "shares_of"]
