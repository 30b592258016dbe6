"""Several steps of decoding in one call of compiled code: draft, verify, commit, and again.

A step of a small model takes a quarter of a millisecond, and to leave compiled code between its
parts a fifth of that: what Python looks at lies in no cache behind a forward. So where the
likeliest tokens are taken as they are, and nothing drafts or a speculator does, some milliseconds
of steps are made at once, up to a token at which somebody has to look.
"""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.experimental import structref
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
    int8,
    lanes,
    matmul,
    standing_by,
    sums,
    tiles,
)
from accel import meeting as meeting_of
from accel.choice import MOST_NODES, Draft, learn_speculated, note_asked, passes_in
from accel.compiled_attention import Floats, move
from accel.compiled_forward import forward_at, meetings_of, shares_of
from accel.compiled_side import OpenSide
from accel.compiled_task import Given, Share, Wanted
from accel.draft_tree import Source, TokenArray
from accel.drawing import Draws, moved
from accel.meeting import LATE
from accel.sources import asking, mixture_room, prompt, speculated_step, speculation
from accel.sources.asking import ask_at
from accel.sources.compiled import FieldsType, compiled_with
from accel.sources.mixture_room import NOT_COMMITTED
from accel.sources.speculated_step import MOST_SEEN, note_in
from accel.sources.speculation import Grown, lay_out, opened

MOST_STEPS = 32
"""Steps of one call at most."""

MOST_UNLINKED = 4 * (MOST_NODES + 1)
"""Tokens at most that are held for a drafter until it is asked."""

IS_POSSIBLE = os.name == "posix"
"""Whether compiled code can tell the time here."""

_MODEL = int(Source.MODEL)
_NOTHING, _SPECULATION = int(Draft.NOTHING), int(Draft.SPECULATION)
_MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 0)
_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))


class Steps(NamedTuple):
    """What steps leave behind.

    accepted: int64 [steps], nodes of each tree that were right; drafted_s, verified_s: float64,
    seconds of drafting, where it was, and of forwards; tokens, sources: int32 and int8, what all
    chose, ``accepted`` + 1 a step, and where each token came from (a ``Source``); unlinked: int32,
    tokens that the drafter's text does not have yet; clock: int64 [2].
    """

    accepted: NDArray[np.int64]
    drafted_s: NDArray[np.float64]
    verified_s: NDArray[np.float64]
    tokens: TokenArray
    sources: NDArray[np.int8]
    unlinked: TokenArray
    clock: NDArray[np.int64]

    @classmethod
    def room(cls) -> Steps:
        """Room for those of one call."""
        tokens = MOST_STEPS * (MOST_NODES + 1)
        return cls(
            np.zeros(MOST_STEPS, np.int64),
            np.zeros(MOST_STEPS),
            np.zeros(MOST_STEPS),
            np.zeros(tokens, np.int32),
            np.zeros(tokens, np.int8),
            np.zeros(MOST_UNLINKED, np.int32),
            np.zeros(2, np.int64),
        )


@structref.register
class _StageType(FieldsType):
    """Compiled form of ``Stage``."""


class Stage(structref.StructRefProxy):
    """What stays the same from call to call, see ``stage_of``."""


structref.define_proxy(Stage, _StageType, ["steps", "bare", "meeting", "inputs"])


@njit(cache=True)
def stage_of(steps: Steps, bare: Grown, meeting: NDArray[np.int64], inputs: Floats) -> Stage:
    """A stage with these: what is written, room for a tree without nodes, where two threads meet,
    and the inputs of no mask rows, float32 [0, width]."""
    return Stage(steps, bare, meeting, inputs)


class Limits(NamedTuple):
    """Up to where steps are made: so many of them, tokens that they choose, nodes of a tree, and
    positions of the model; and behind which tokens none is made, bool [vocabulary]."""

    steps: int
    tokens: int
    nodes: int
    positions: int
    pauses: NDArray[np.bool_]


class Made(NamedTuple):
    """What was made.

    steps, drafts, nodes: how many steps, those that drafted, and nodes of their trees; tokens,
    linked: what they chose, and how much of that is in the drafter's text; stop, length, place:
    where that stops, and its match (of length ``NOT_COMMITTED`` where it was not asked for); past:
    rows that are committed; asked_s: seconds of asking where nothing was drafted; verified_s,
    expected_s: of the forwards, as measured and as the planner expected them.
    """

    steps: int
    drafts: int
    nodes: int
    tokens: int
    linked: int
    stop: int
    length: int
    place: int
    past: int
    asked_s: float
    verified_s: float
    expected_s: float


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


@compiled_with(borrows=True)
def _note_chosen(
    steps: Steps, first: int, walked: Any, count: int, sources: NDArray[np.int8], pauses: Any
) -> bool:
    """Note the tokens of a walk, from token ``first`` of all on, and the ``sources`` of its nodes;
    returns whether one of them ``pauses``."""
    found = False
    for place in range(count):
        token = walked.chosen[place]
        steps.tokens[first + place] = token
        steps.sources[first + place] = sources[walked.path[place]] if place < count - 1 else _MODEL
        found |= pauses[token]
    return found


_FORWARD = (
    *(compiled_attention, compiled_forward, compiled_head, compiled_layers, compiled_parts),
    *(compiled_paths, compiled_side, drawing, lanes, matmul, meeting_of, standing_by, sums, tiles),
)


@compiled_with(*_FORWARD, borrows=True)
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


@compiled_with(*_FORWARD, speculation)
def plain_steps_in(
    own: Any,
    last: int,
    past: int,
    capacity: int,
    least_rows: int,
    number: int,
    draws: Draws,
    limits: Limits,
    stage: Any,
) -> Made:
    """``steps_in`` without drafts, behind a text that ends with the token ``last``."""
    steps, tree, side = stage.steps, stage.bare, compiled_side.opened(own)
    meeting, inputs = stage.meeting, stage.inputs
    step, verified_s, is_over, late = 0, 0.0, False, meeting[LATE]
    most = min(limits.steps, limits.tokens, limits.positions - past, capacity - past)
    while step < most and not is_over:
        began = _now(steps.clock)
        lay_out(tree, 0, last)
        at_step = moved(draws, step)
        chosen = _walk_tree(
            side, tree, 0, past + step, least_rows, number, at_step, meeting, inputs
        )
        number += meetings_of(len(side.weights.qkv), 1)
        last = side.walk_room.chosen[0]
        is_over = _note_chosen(
            steps, step, side.walk_room, chosen, tree.nodes.sources, limits.pauses
        )
        steps.accepted[step], steps.verified_s[step] = 0, _now(steps.clock) - began
        verified_s += steps.verified_s[step]
        step += 1
        # Without a core of its own the second thread would be late in every step.
        is_over |= meeting[LATE] > late
    return Made(
        *(step, 0, 0, step, 0, 0, NOT_COMMITTED, 0, past + step),
        *(0.0, verified_s, verified_s),
    )


@compiled_with(*_FORWARD, asking, choice, int8, mixture_room, prompt, speculated_step, speculation)
def steps_in(  # noqa: PLR0915 (compiled; one loop over what it would have to hand around)
    own: Any,
    desk: Any,
    room: Any,
    coming: tuple[int, int, int],
    added: TokenArray,
    grown: int,
    start: int,
    stop: int,
    has_state: bool,
    odds: Any,
    last: int,
    past: int,
    capacity: int,
    least_rows: int,
    number: int,
    draws: Draws,
    limits: Limits,
    stage: Any,
) -> Made:
    """Decode behind a text that ends with the token ``last``, which has no row yet, and ``past``
    committed rows of ``capacity``.

    own: the ``Side`` that computes; those up to has_state: see ``Asking``; least_rows:
    from which two threads share a forward, 0 for never; number: see ``compiled_forward.forward``;
    draws: how the first token is chosen.
    Ends where a limit is reached, where memory has to be made, where the second thread was late, or
    something else is to be drafted than what a speculator guesses.
    """
    steps, meeting, inputs, side = (
        stage.steps,
        stage.meeting,
        stage.inputs,
        compiled_side.opened(own),
    )
    nothing = 0, -1, -1
    numbers, chains, table = odds.numbers, odds.chains, opened(desk)
    work, tree, text = table.work, table.grown, table.text
    length, place = NOT_COMMITTED, 0
    unlinked, held = steps.unlinked, len(added)
    for i in range(min(held, MOST_UNLINKED)):
        unlinked[i] = added[i]
    step = drafts = all_nodes = chosen_tokens = linked = 0
    asked_s = verified_s = expected_s = 0.0
    late, began = meeting[LATE], _now(steps.clock)
    while step < limits.steps:
        most = min(limits.nodes, MOST_NODES, limits.positions - past - 1)
        if (
            chosen_tokens >= limits.tokens
            or most < 1
            or past + most + 1 > capacity
            or stop + grown + MOST_SEEN > len(text)
            or held + most + 1 > MOST_UNLINKED
        ):
            break
        count, kind, is_asked = 0, _NOTHING, False
        if chosen_tokens + 1 < limits.tokens and not passes_in(numbers):
            found, behind, kind, _, count = ask_at(
                *(table, room, coming, unlinked[:held], grown, start, stop, has_state),
                *(numbers, chains, most),
            )
            if found == NOT_COMMITTED:
                break
            length, place = found, behind
            stop, linked = stop + grown, chosen_tokens
            coming, held, grown = nothing, 0, 0
            if kind not in (_NOTHING, _SPECULATION):
                break
            is_asked = True
        if kind != _SPECULATION:
            lay_out(tree, 0, last)
        drafted = _now(steps.clock)
        if is_asked:
            note_asked(numbers, kind, drafted - began)
        at_step = moved(draws, chosen_tokens)
        chosen = _walk_tree(side, tree, count, past, least_rows, number, at_step, meeting, inputs)
        verified = _now(steps.clock)
        number += meetings_of(len(side.weights.qkv), count + 1)
        path = side.walk_room.path[: chosen - 1]
        _keep_path(side.kept, path, past + 1)
        past += chosen
        row = path[chosen - 2] + 1 if chosen > 1 else 0
        has_state = True
        note_in(work.known, side.row_scratch.normed[row], side.row_scratch.middle[row])
        if kind == _SPECULATION:
            learn_speculated(numbers, chosen - 1)
        is_over = _note_chosen(
            *(steps, chosen_tokens, side.walk_room, chosen, tree.nodes.sources, limits.pauses)
        )
        for i in range(chosen):
            unlinked[held + i] = side.walk_room.chosen[i]
        last, held = side.walk_room.chosen[chosen - 1], held + chosen
        chosen_tokens, grown = chosen_tokens + chosen, grown + chosen
        steps.accepted[step], steps.verified_s[step] = chosen - 1, verified - drafted
        verified_s, expected_s = (
            verified_s + steps.verified_s[step],
            expected_s + chains.seconds[count],
        )
        ended = _now(steps.clock)
        drafted_s, began = drafted - began + (ended - verified), ended
        if kind == _SPECULATION:
            steps.drafted_s[drafts] = drafted_s
            drafts, all_nodes = drafts + 1, all_nodes + count
        else:
            asked_s += drafted_s
        step += 1
        if is_over or meeting[LATE] > late:
            break
    return Made(
        *(step, drafts, all_nodes, chosen_tokens, linked, stop, length, place, past),
        *(asked_s, verified_s, expected_s),
    )
