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

from accel import (
    compiled_attention,
    compiled_head,
    compiled_parts,
    compiled_paths,
    compiled_side,
    drawing,
    lanes,
    matmul,
    meeting,
    standing_by,
    sums,
)
from accel.compiled_attention import Floats, attend
from accel.compiled_head import walk
from accel.compiled_parts import (
    add_and_normalise,
    embed,
    gate,
    keep_rows,
    middle_layer,
    parts_of,
    place_rows,
    project,
    queries_of,
)
from accel.compiled_side import OpenSide, opened
from accel.draft_tree import TokenArray
from accel.drawing import Draws
from accel.matmul import BLOCK, multiply
from accel.meeting import await_done, follow_where, linger, meet_where, note_done, stand_by
from accel.sources.compiled import compiled_with
from accel.standing_by import (
    BY_COLUMNS,
    FIRST,
    FIRST_MASK,
    NUMBER,
    PAST,
    ROWS,
    WALKS,
    draws_of,
    hand_over,
    rows_of,
)

_MEETINGS = 6
"""How often two threads meet in a layer at most."""

COLUMN_ROWS = 64
"""Rows up to which two threads take half of the columns each, and half of the rows where there are
more: 16, 24, 32 and 48 rows 452, 666, 860 and 1,291 us, half of the rows each 527, 711, 878 and
1,333."""

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
    return _MEETINGS * layers + 1 + rows


_PARTS = (
    *(lanes, matmul, compiled_attention, compiled_head, compiled_parts, compiled_paths),
    *(compiled_side, drawing, meeting, standing_by, sums),
)


@compiled_with(*_PARTS)
def forward(
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int32],
    mask: Floats,
    past: int,
    first_mask: int,
    mask_inputs: Floats,
    logits: Floats,
    parents: TokenArray,
    walks: bool,
    draws: Draws,
    by_columns: bool,
    stands_by: bool,
    first: int,
    last: int,
    own: Any,
    meeting: NDArray[np.int64],
    side: int,
    number: int,
) -> int:
    """``forward_at``, of a ``Side``."""
    count: int = forward_at(
        tokens,
        offsets,
        mask,
        past,
        first_mask,
        mask_inputs,
        logits,
        parents,
        walks,
        draws,
        by_columns,
        stands_by,
        first,
        last,
        opened(own),
        meeting,
        side,
        number,
    )
    return count


@compiled_with(*_PARTS, borrows=True)
def forward_at(  # noqa: PLR0915 (compiled; one loop over arrays it would have to hand around)
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int32],
    mask: Floats,
    past: int,
    first_mask: int,
    mask_inputs: Floats,
    logits: Floats,
    parents: TokenArray,
    walks: bool,
    draws: Draws,
    by_columns: bool,
    stands_by: bool,
    first: int,
    last: int,
    own: OpenSide,
    meeting: NDArray[np.int64],
    side: int,
    number: int,
) -> int:
    """Compute rows after ``past`` committed ones; see ``rows.Rows`` for the first three.

    logits: float32 [wanted, >= vocabulary], of the last rows, written. Rows from ``first_mask`` on
    are mask rows: ``mask_inputs`` float32 [masks, width] stand for their tokens, and the side's
    ``paths`` are added for them alone. draws: how a walk chooses; own: the side that computes.

    Where it ``walks``, logits of mask rows alone are written, and the walk along the tree of
    ``parents``, whose root and nodes stand before them, is left in the side's ``walk_room``;
    returns how many tokens it chose.

    This call computes the rows from ``first`` to before ``last``. Where those are not all, another
    thread computes the others: side 1 waits for the keys and values of side 0 in every layer, and
    both meet at the end, by the numbers after ``number``. ``by_columns`` the rows are those whose
    keys it places.

    Where it ``stands_by``, side 0 hands over a ``Job``, and side 1 computes one after another of
    these, whatever rows it was called with, until it is wanted no more.
    """
    weights, shape, vocabulary, paths = own.weights, own.shape, own.vocabulary, own.paths
    rotations, kept, found, job = own.rotations, own.kept, own.found, own.job
    key_words, value_words, room = own.key_words, own.value_words, own.room
    row_scratch, column_scratch = own.row_scratch, own.column_scratch
    path_scratch, walk_room = own.path_scratch, own.walk_room
    if stands_by and side == 0:
        hand_over(
            *(job, tokens, offsets, mask, past, parents, len(logits), walks, by_columns),
            *(last, first_mask, draws, meeting, number),
        )
    elif side == 0:
        # The other thread may have lost its core while it looked at what both share.
        await_done(meeting)
    while True:
        if stands_by and side == 1:
            if not stand_by(meeting):
                return 0
            tokens, offsets, mask, parents, logits = rows_of(job)
            numbers = job.numbers
            past, first, last = numbers[PAST], numbers[FIRST], numbers[ROWS]
            walks, by_columns = numbers[WALKS] > 0, numbers[BY_COLUMNS] > 0
            first_mask, number, draws = numbers[FIRST_MASK], numbers[NUMBER], draws_of(job)
        scratch = column_scratch if by_columns else row_scratch
        is_shared = by_columns or last - first < len(tokens)
        begin, end = (0, len(tokens)) if by_columns else (first, last)
        rows = end - begin
        x, added, normed = scratch.x[begin:end], scratch.added[begin:end], scratch.normed[begin:end]
        qkv, gate_up = scratch.qkv[begin:end], scratch.gate_up[begin:end]
        attended, gated = scratch.attended[begin:end], scratch.gated[begin:end]
        queries = scratch.queries[begin * shape.heads : end * shape.heads]
        own_offsets, own_mask = offsets[begin:end], mask[begin:end]
        own_first, own_last = first - begin, last - begin
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
            if layer == middle_layer(len(weights.qkv)) and (side == 0 or not by_columns):
                keep_rows(normed, scratch.middle[begin:end])
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
            place_rows(
                qkv,
                weights.qkv_bias[layer],
                own_offsets,
                own_first,
                own_last,
                past + begin,
                past,
                shape,
                rotations,
                kept.keys[layer],
                kept.values[layer],
                queries,
            )
            number = follow_where(is_shared, meeting, side, number)
            for head in range(shape.kv_heads):
                first_query, last_query = queries_of(
                    rows * shape.heads // shape.kv_heads, head, by_columns, side
                )
                attend(
                    queries,
                    key_words[layer, head],
                    value_words[layer, head],
                    own_mask,
                    own_offsets,
                    begin,
                    past,
                    shape,
                    head,
                    first_query,
                    last_query,
                    room,
                    attended,
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
                draws,
                is_shared,
                meeting,
                side,
                number,
            )
        if stands_by and side == 1:
            note_done(meeting)
            continue
        if is_shared:
            linger(side)
        return count
