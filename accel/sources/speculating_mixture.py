"""The default drafter of models with a speculator: retrieval, and beside it a small network.

Where the text repeats itself retrieval drafts, and long; between, where it would draft little or
nothing, the speculator does, from the model's last state and what retrieval knows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source
from accel.matmul import rounded_bits
from accel.sources.acceptance import Weights
from accel.sources.mixture import MixtureDrafter
from accel.sources.protocol import DraftRequest
from accel.sources.speculated_head import Head
from accel.sources.speculation import (
    MOST_DEPTH,
    MOST_NODES,
    Desk,
    Work,
    begin_in,
    desk_of,
    speculate_in,
)
from accel.speculator import Speculator

_SOURCES = np.full(MOST_NODES, Source.SPECULATED, np.int8)


class SpeculatingMixture(MixtureDrafter):
    """Drafts as ``MixtureDrafter`` does, and speculates where it is asked to."""

    def __init__(self, speculator: Speculator, **options: Any) -> None:
        """``options``: those of ``MixtureDrafter``. ``speculator`` may be shared by drafters."""
        super().__init__(**options)
        self._speculator = speculator
        self._head, self._work = Head.room(speculator), Work.room(speculator)
        self._desk: Desk | None = None
        self._desk_text = self._desk_newest = np.empty(0, np.int32)
        self._state: NDArray[Any] | None = None

    def begin(self, request: DraftRequest) -> None:
        """Forget the last request; the context is now ``request.prompt``."""
        super().begin(request)
        self._state = None
        begin_in(self._desk_for_text(), self._prompt.stop)

    def note_state(self, state: NDArray[Any]) -> None:
        """See ``protocol.Speculating``."""
        self._state = state

    def speculate(self, nodes: int, least: float) -> DraftTree:
        """See ``protocol.Speculating``."""
        state = self._state
        if state is None or self._prompt.is_empty:
            return DraftTree.empty()
        desk, work = self._desk_for_text(), self._work
        # Not where it is noted: rounding takes longer than to ask, which mostly ends without this.
        work.known[0] = state if state.dtype == np.int16 else rounded_bits(state)
        count = speculate_in(desk, self._prompt.stop, *self._match, nodes, least)
        if not count:
            return DraftTree.empty()
        self._unlearnt = DraftTree(
            work.tokens[:count].copy(),
            work.parents[:count].copy(),
            work.chances[:count].copy(),
            _SOURCES[:count],
        )
        return self._unlearnt

    def commit(self, tree: DraftTree, path: list[int], tokens: NDArray[np.int32]) -> None:
        """The context grew by ``tokens``; the state that was noted is of the step before."""
        self._state = None
        super().commit(tree, path, tokens)

    def _desk_for_text(self) -> Desk:
        """What growing reads and writes, with the text as it is."""
        text = self._prompt.tokens_with(MOST_DEPTH)
        newest = self._prompt.newest
        if self._desk is None or self._desk_text is not text or self._desk_newest is not newest:
            self._desk_text, self._desk_newest = text, newest
            self._desk = desk_of(
                *(self._speculator, self._head, self._work),
                *(text, self._prompt.previous, newest),
            )
        return self._desk


def warm_up(speculator: Speculator) -> None:
    """Compile (or load the compiled form of) what speculating calls."""
    drafter = SpeculatingMixture(speculator, weights=Weights.random(0))
    drafter.begin(DraftRequest(np.array([1, 2, 1, 2, 1], np.int32)))
    drafter.note_state(np.zeros(speculator.state_width, np.int16))
    drafter.match()
    drafter.commit(drafter.speculate(4, 0.1), [], np.array([2], np.int32))
