"""What a step behind a speculator begins with, in one call of compiled code: what the last step
brought is learnt, the text's longest match is looked up, a draft is chosen, and guessed where that
is what was chosen.

Each of these takes some microseconds alone, and asking Python in between takes as many again: the
forward before has left nothing in the caches.
"""

from __future__ import annotations

from typing import Any

from accel import choice as choice_of
from accel import compiled_parts, lanes, matmul, speculator
from accel.choice import Draft, Odds, choose
from accel.draft_tree import TokenArray
from accel.sources import (
    calibration,
    mixture_room,
    prompt,
    speculated_head,
    speculated_step,
    speculation,
)
from accel.sources.compiled import compiled_with
from accel.sources.mixture_room import NOT_COMMITTED, match_in
from accel.sources.speculation import speculate_in

_SPECULATION = int(Draft.SPECULATION)


@compiled_with(
    calibration,
    choice_of,
    compiled_parts,
    lanes,
    matmul,
    mixture_room,
    prompt,
    speculated_head,
    speculated_step,
    speculation,
    speculator,
)
def ask_in(
    desk: Any,
    room: Any,
    nodes: int,
    leaf: int,
    own: int,
    added: TokenArray,
    start: int,
    stop: int,
    grown: int,
    odds: Odds,
    most: int,
) -> tuple[int, int, int, int, int]:
    """``match_in``, ``choose`` and, where that says so, ``speculate_in``.

    ``start``: where the text's own part begins; ``grown``: tokens that the last steps brought, in
    the tree and ``added``; ``most``: nodes at most, 0 where there is no state to guess from.
    Returns the match's length (``NOT_COMMITTED`` where that failed, and nothing else was done) and
    place, what was chosen, nodes of a chain and nodes that were guessed.
    """
    length, place = match_in(room, nodes, leaf, own, added, stop)
    if length == NOT_COMMITTED:
        return length, place, 0, 0, 0
    kind, chain = choose(odds, length, most > 0)
    count = 0
    if kind == _SPECULATION:
        count = speculate_in(desk, start, stop + grown, length, place, most, odds)
    return length, place, kind, chain, count
