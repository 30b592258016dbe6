"""What several steps in one call of compiled code are given, and what they leave behind."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from accel.choice import MOST_NODES
from accel.compiled_attention import Floats
from accel.draft_tree import TokenArray
from accel.sources.compiled import FieldsType, compiled_with
from accel.sources.speculation import Grown

MOST_STEPS = 64
"""Steps of one call at most."""

MOST_UNLINKED = 4 * (MOST_NODES + 1)
"""Tokens at most that are held for a drafter until it is asked."""


class Steps(NamedTuple):
    """What steps leave behind.

    accepted: int64 [steps], nodes of each tree that were right; drafted_s, verified_s: float64,
    seconds of drafting, where it was, with what was learnt from the step before, and of forwards;
    tokens, sources: int32 and int8, what all chose, ``accepted`` + 1 a step, and where each token
    came from (a ``Source``); unlinked: int32, tokens that the drafter's text does not have yet;
    clock: int64 [2].
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


@compiled_with()
def stage_of(steps: Steps, bare: Grown, meeting: NDArray[np.int64], inputs: Floats) -> Stage:
    """A stage with these: what is written, room for a tree without nodes, where two threads meet,
    and the inputs of no mask rows, float32 [0, width]."""
    return Stage(steps, bare, meeting, inputs)


class Start(NamedTuple):
    """Where steps begin: behind a text that ends with the token ``last``, which has no row yet, and
    ``past`` committed rows of ``capacity``.

    least_rows: from which on two threads share a forward, 0 for never; number: after which these
    meet, see ``compiled_forward.forward_at``.
    """

    last: int
    past: int
    capacity: int
    least_rows: int
    number: int


class Limits(NamedTuple):
    """Up to where steps are made: so many of them, tokens that they choose, nodes of a tree,
    positions of the model, and seconds; behind which tokens none is made, bool [vocabulary]; and
    how many interruptions there may have been (``meeting.interrupt``)."""

    steps: int
    tokens: int
    nodes: int
    positions: int
    seconds: float
    pauses: NDArray[np.bool_]
    interruptions: int


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


__all__ = [
    "MOST_STEPS",
    "MOST_UNLINKED",
    "Limits",
    "Made",
    "Stage",
    "Start",
    "Steps",
    "stage_of",
]
