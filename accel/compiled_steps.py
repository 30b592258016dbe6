"""Several steps of decoding in one call of compiled code: draft, verify, commit, and again.

A step of a small model takes a quarter of a millisecond, and to leave compiled code between its
parts a fifth of that: what Python looks at lies in no cache behind a forward. So where the
likeliest tokens are taken as they are, and nothing drafts or a speculator does, some milliseconds
of steps are made at once, up to a token at which somebody has to look.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from accel import (
    choice,
    compiled_attention,
    compiled_forward,
    compiled_head,
    compiled_layers,
    compiled_parts,
    compiled_paths,
    compiled_side,
    drawing,
    ending,
    int8,
    lanes,
    matmul,
    standing_by,
    sums,
    tiles,
)
from accel import meeting as meeting_of
from accel.choice import MOST_NODES, Chains, Draft, learn_speculated, note_asked, passes_in
from accel.compiled_attention import Floats, move
from accel.compiled_forward import forward_at, meetings_of, shares_of
from accel.compiled_parts import Scratch
from accel.compiled_side import OpenSide
from accel.compiled_stage import MOST_UNLINKED, Limits, Made, Start, Steps
from accel.compiled_task import Given, Share, Wanted
from accel.draft_tree import Source, TokenArray
from accel.drawing import Draws, moved
from accel.ending import Ended, Ending, is_wanted, note_states
from accel.meeting import LATE, is_interrupted
from accel.sources import asking as asking_of
from accel.sources import mixture_room, prompt, speculated_step, speculation
from accel.sources.asking import Reached, ask_at
from accel.sources.compiled import compiled_with
from accel.sources.mixture_room import NOT_COMMITTED, Linked, linked_in
from accel.sources.speculated_step import MOST_SEEN
from accel.sources.speculation import Grown, Open, lay_out, opened

IS_POSSIBLE = os.name == "posix"
"""Whether compiled code can tell the time here."""

_MODEL = int(Source.MODEL)
_NOTHING, _SPECULATION = int(Draft.NOTHING), int(Draft.SPECULATION)
_NOTHING_COMES = 0, -1, -1
"""For ``Asking.coming``: no tree is to be learnt from."""
_MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 0)
_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))


@compiled_with()
def _now(clock: NDArray[np.int64]) -> float:
    """Seconds, as ``time.monotonic``."""
    _clock_gettime(_MONOTONIC, clock.ctypes)
    seconds: float = clock[0] + 1e-9 * clock[1]
    return seconds


@compiled_with(compiled_attention)
def _keep_path(kept: Any, path: TokenArray, first: int) -> None:
    """Move the rows of nodes, which stand from ``first`` on, to the front of them."""
    count = len(path)
    if count == 0 or path[count - 1] == count - 1:
        return
    rows = np.empty(count, np.int64)
    for place in range(count):
        rows[place] = first + path[place]
    move(kept, rows, first)


@compiled_with(borrows=True, inner=True)
def _note_step(
    steps: Steps,
    step: int,
    took_s: float,
    first: int,
    walked: Any,
    count: int,
    sources: NDArray[np.int8],
    pauses: Any,
) -> bool:
    """Note what a forward took, the tokens of its walk, from token ``first`` of all on, and the
    ``sources`` of its nodes; returns whether one of them ``pauses``."""
    steps.accepted[step], steps.verified_s[step] = count - 1, took_s
    found = False
    for place in range(count):
        token = walked.chosen[place]
        steps.tokens[first + place] = token
        steps.sources[first + place] = sources[walked.path[place]] if place < count - 1 else _MODEL
        found |= pauses[token]
    return found


@compiled_with(meeting_of, borrows=True, forceinline=True)
def _ends_call(meeting: NDArray[np.int64], late: int, limits: Limits, took_s: float) -> bool:
    """Whether no further step is made in this call, which began when the second thread had been
    late so often: without a core of its own it would be late in every step."""
    is_long = took_s >= limits.seconds
    return is_long or meeting[LATE] > late or is_interrupted(meeting, limits.interruptions)


_FORWARD = (
    *(compiled_attention, compiled_forward, compiled_head, compiled_layers, compiled_parts),
    *(compiled_paths, compiled_side, drawing, ending, int8, lanes, matmul, meeting_of, standing_by),
    *(sums, tiles),
)


@compiled_with(*_FORWARD, borrows=True, inner=True)
def _walk_tree(
    own: OpenSide,
    tree: Grown,
    nodes: int,
    past: int,
    least_rows: int,
    number: int,
    draws: Draws,
    meeting: NDArray[np.int64],
    inputs: Floats,
) -> int:
    """The forward of the first ``nodes`` of a tree; returns how many tokens the walk chose."""
    rows = nodes + 1
    is_shared = 0 < least_rows <= rows
    by_columns, half = shares_of(rows)
    mask = tree.mask[: rows * rows].reshape(rows, rows)
    count: int = forward_at(
        Given(tree.tokens[:rows], tree.offsets[:rows], mask, past, rows, inputs),
        Wanted(own.job.logits[:0], tree.nodes.parents[:nodes], True, draws),
        Share(is_shared and by_columns, 0, half if is_shared else rows),
        is_shared,
        own,
        meeting,
        0,
        number,
    )
    return count


@compiled_with(borrows=True, forceinline=True)
def _hold(unlinked: TokenArray, held: int, tokens: TokenArray, count: int) -> int:
    """Hold ``count`` more tokens for a drafter, behind those ``held``; returns how many there are,
    more than there is room for where nothing may be made of them."""
    for i in range(min(count, len(unlinked) - held)):
        unlinked[held + i] = tokens[i]
    return held + count


# Helpers are given what they need of a side: one that is given all of it takes a second to compile.


@compiled_with(ending, borrows=True)
def _least_shared(made: Ending, least_rows: int) -> int:
    """From how many rows on the second thread multiplies the states that a forward ends with."""
    return least_rows if least_rows > 0 and is_wanted(made) else MOST_NODES + 2


@compiled_with(compiled_attention, forceinline=True)
def _commit(kept: Any, path: TokenArray, past: int) -> int:
    """Keep the rows of a walk along these nodes; returns the last of them."""
    _keep_path(kept, path, past + 1)
    return path[len(path) - 1] + 1 if len(path) > 0 else 0


@compiled_with(compiled_parts, ending, matmul, borrows=True)
def _note_row(known: Floats, scratch: Scratch, row: int, is_coming: bool) -> int:
    """Keep the states of a row for the next tree; of -1 there are none. Returns the row, to be kept
    later, and does nothing, where the product of its states ``is_coming`` from the other thread."""
    if is_coming:
        return row
    if row >= 0:
        note_states(known, scratch.normed[row], scratch.middle[row])
    return -1


@compiled_with(*_FORWARD, speculation)
def plain_steps_in(own: Any, start: Start, draws: Draws, limits: Limits, stage: Any) -> Made:
    """``steps_in`` without drafts."""
    steps, tree, meeting = stage.steps, stage.bare, stage.meeting
    side, inputs = compiled_side.opened(own), stage.inputs
    last, past, number = start.last, start.past, start.number
    step, verified_s, is_over, late = 0, 0.0, False, meeting[LATE]
    most = min(limits.steps, limits.tokens, limits.positions - past, start.capacity - past)
    first = _now(steps.clock)
    while step < most and not is_over:
        began = _now(steps.clock)
        lay_out(tree, 0, last)
        how = start.least_rows, number, moved(draws, step), meeting, inputs
        chosen = _walk_tree(side, tree, 0, past + step, *how)
        number += meetings_of(len(side.weights.qkv), 1)
        last = side.walk_room.chosen[0]
        verified = _now(steps.clock)
        took_s = verified - began
        is_over = _note_step(
            *(steps, step, took_s, step, side.walk_room, chosen),
            *(tree.nodes.sources, limits.pauses),
        ) or _ends_call(meeting, late, limits, verified - first)
        verified_s += took_s
        step += 1
    return Made(
        *(step, 0, 0, step, 0, 0, NOT_COMMITTED, 0, past + step),
        *(0.0, verified_s, verified_s),
    )


_STEPS = (
    *_FORWARD,
    *(asking_of, choice, mixture_room, prompt, speculated_step, speculation),
)


@compiled_with(*_STEPS)
def steps_in(
    own: Any,
    desk: Any,
    room: Any,
    reached: Reached,
    odds: Any,
    start: Start,
    draws: Draws,
    limits: Limits,
    stage: Any,
) -> Made:
    """Decode from where ``start`` says; own: the ``Side`` that computes; desk, room, reached: see
    ``Asking``; odds: ``choice.Odds``.

    Ends where a limit is reached, where memory has to be made, where the second thread was late, or
    something else is to be drafted than what a speculator guesses.
    """
    return _steps_at(
        *(compiled_side.opened(own), opened(desk), linked_in(room), room, reached),
        *(odds.numbers, odds.chains, start, draws, limits),
        *(stage.steps, stage.meeting, stage.inputs),
    )


@compiled_with(*_STEPS, borrows=True, inner=True)
def _steps_at(
    side: OpenSide,
    table: Open,
    text: Linked,
    room: Any,
    reached: Reached,
    numbers: NDArray[np.float64],
    chains: Chains,
    start: Start,
    draws: Draws,
    limits: Limits,
    steps: Steps,
    meeting: NDArray[np.int64],
    inputs: Floats,
) -> Made:
    """``steps_in``, by what its arguments hold."""
    tree, known = table.grown, table.work.known
    walked, scratch = side.walk_room, side.row_scratch
    last, past, number = start.last, start.past, start.number
    coming, grown, stop, has_state = reached.coming, reached.grown, reached.stop, reached.has_state
    length, place, row, late, is_over = NOT_COMMITTED, 0, -1, meeting[LATE], False
    held = _hold(steps.unlinked, 0, reached.added, len(reached.added))
    step = drafts = all_nodes = tokens = linked = 0
    asked_s = verified_s = expected_s = 0.0
    first = began = _now(steps.clock)
    while step < limits.steps and tokens < limits.tokens and not is_over:
        most = min(limits.nodes, MOST_NODES, limits.positions - past - 1)
        has_room = stop + grown + MOST_SEEN <= len(table.text) and held + most + 1 <= MOST_UNLINKED
        if most < 1 or past + most + 1 > start.capacity or not has_room:
            break
        count, kind, is_asked = 0, _NOTHING, False
        if tokens + 1 < limits.tokens and not passes_in(numbers):
            found, behind, kind, _, count = ask_at(
                table,
                text,
                room,
                Reached(coming, steps.unlinked[:held], grown, reached.start, stop, has_state),
                numbers,
                chains,
                most,
                Ended(row >= 0, side.ending.product, meeting),
            )
            if found == NOT_COMMITTED:
                break
            length, place, stop, linked = found, behind, stop + grown, tokens
            coming, held, grown, is_asked = _NOTHING_COMES, 0, 0, True
            if kind not in (_NOTHING, _SPECULATION):
                break
        if kind != _SPECULATION:
            lay_out(tree, 0, last)
        drafted = _now(steps.clock)
        if is_asked:
            note_asked(numbers, kind, drafted - began)
        steps.drafted_s[drafts] = drafted - began
        asked_s += drafted - began
        drafts, all_nodes = drafts + int(kind == _SPECULATION), all_nodes + count
        chosen = _walk_tree(
            *(side, tree, count, past, start.least_rows, number, moved(draws, tokens)),
            *(meeting, inputs),
        )
        verified = _now(steps.clock)
        number += meetings_of(len(side.weights.qkv), count + 1)
        row = _commit(side.kept, walked.path[: chosen - 1], past)
        is_over = _note_step(
            *(steps, step, verified - drafted, tokens, walked, chosen),
            *(tree.nodes.sources, limits.pauses),
        ) or _ends_call(meeting, late, limits, verified - first)
        # To commit is no part of drafting; to learn from it is.
        began = _now(steps.clock)
        row = _note_row(
            *(known, scratch, row),
            count + 1 >= _least_shared(side.ending, start.least_rows),
        )
        held = _hold(steps.unlinked, held, walked.chosen, chosen)
        last, has_state = walked.chosen[chosen - 1], True
        past, tokens, grown = past + chosen, tokens + chosen, grown + chosen
        verified_s, expected_s = verified_s + verified - drafted, expected_s + chains.seconds[count]
        if kind == _SPECULATION:
            learn_speculated(numbers, chosen - 1)
        step += 1
    _note_row(known, scratch, row, False)
    asked_s += _now(steps.clock) - began - steps.drafted_s[:drafts].sum()
    return Made(
        *(step, drafts, all_nodes, tokens, linked, stop, length, place, past),
        *(asked_s, verified_s, expected_s),
    )


__all__ = ["IS_POSSIBLE", "plain_steps_in", "steps_in"]
