"""What a step behind a speculator begins with, in one call of compiled code: what the last step
brought is learnt, the text's longest match is looked up, a draft is chosen, and guessed where that
is what was chosen.

Each of these takes some microseconds alone, and asking Python in between takes as many again: the
forward before has left nothing in the caches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel import choice as choice_of
from accel import compiled_parts, ending, int8, lanes, matmul, meeting, speculator
from accel.choice import Chains, Draft, choose_in
from accel.draft_tree import TokenArray
from accel.ending import Ended, nothing_ended
from accel.sources import (
    calibration,
    mixture_room,
    prompt,
    speculated_head,
    speculated_step,
    speculation,
)
from accel.sources.compiled import compiled_with
from accel.sources.mixture_room import NOT_COMMITTED, Linked, linked_in, match_at
from accel.sources.speculation import Open, opened, speculate_at

_SPECULATION = int(Draft.SPECULATION)


class Reached(NamedTuple):
    """How far a drafter's text is.

    coming, added: what is not yet in the text, nodes of a tree (0 for none), the last that was
    right, and the token behind it, as in ``mixture_room.commit_in``, and tokens behind these,
    int32; grown: how many tokens that are; start, stop: where the text's own part begins, and where
    it stops without them; has_state: whether there is a state to guess from.
    """

    coming: tuple[int, int, int]
    added: TokenArray
    grown: int
    start: int
    stop: int
    has_state: bool


class Asking(NamedTuple):
    """What a drafter is asked with: ``speculation.Desk``, ``mixture_room.Room``, and how far its
    text is. Numba takes 28 us to tell the types of such a tuple, and 5 of its items."""

    desk: Any
    room: Any
    reached: Reached


_ASKING = (
    calibration,
    choice_of,
    compiled_parts,
    ending,
    int8,
    lanes,
    matmul,
    meeting,
    mixture_room,
    prompt,
    speculated_head,
    speculated_step,
    speculation,
    speculator,
)


@compiled_with(*_ASKING, borrows=True, inner=True)
def ask_at(
    desk: Open,
    text: Linked,
    room: Any,
    reached: Reached,
    numbers: NDArray[np.float64],
    chains: Chains,
    most: int,
    ended: Ended,
) -> tuple[int, int, int, int, int]:
    """``match_at``, ``choose_in`` and, where that says so, ``speculate_at``.

    See ``Asking``; text: that of the room; ``most``: nodes at most; ended: see
    ``speculated_step.start``. Returns the match's length (``NOT_COMMITTED`` where that failed, and
    nothing else was done) and place, what was chosen, nodes of a chain and nodes that were guessed.
    """
    nodes, leaf, own = reached.coming
    length, place = match_at(text, room, nodes, leaf, own, reached.added, reached.stop)
    if length == NOT_COMMITTED:
        return length, place, 0, 0, 0
    kind, chain = choose_in(numbers, chains, length, reached.has_state)
    count = 0
    if kind == _SPECULATION:
        where = reached.start, reached.stop + reached.grown, length, place, most
        count = speculate_at(desk, *where, numbers, chains, ended)
    return length, place, kind, chain, count


@compiled_with(*_ASKING)
def ask_in(
    desk: Any, room: Any, reached: Reached, odds: Any, most: int
) -> tuple[int, int, int, int, int]:
    """``ask_at``, by what it takes as Python has it."""
    how = odds.numbers, odds.chains, most, nothing_ended()
    return ask_at(opened(desk), linked_in(room), room, reached, *how)
