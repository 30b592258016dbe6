"""The default drafter of models with a speculator: retrieval, and beside it a small network.

Where the text repeats itself retrieval drafts, and long; between, where it would draft little or
nothing, the speculator does, from the model's last state and what retrieval knows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.choice import CHANCES, MOST_NODES, Chains, Choice, Draft, Odds, choose
from accel.draft_tree import DraftTree, TokenArray
from accel.ending import note_states
from accel.matmul import row_dtype
from accel.rows import Rows
from accel.sources.acceptance import Weights
from accel.sources.asking import Asking, Reached, ask_in
from accel.sources.mixture import USUAL_NODES, MixtureDrafter
from accel.sources.mixture_room import NOT_COMMITTED
from accel.sources.protocol import DraftRequest
from accel.sources.speculated_head import Head
from accel.sources.speculated_step import MOST_SEEN, Work
from accel.sources.speculation import (
    Desk,
    Grown,
    begin_in,
    desk_of,
    speculate_in,
)
from accel.speculator import Speculator
from accel.trust import Trust

_NOTHING = np.empty(0, np.int32)


class SpeculatingMixture(MixtureDrafter):
    """Drafts as ``MixtureDrafter`` does, and speculates where it is asked to."""

    def __init__(self, speculator: Speculator, **options: Any) -> None:
        """``options``: those of ``MixtureDrafter``. ``speculator`` may be shared by drafters."""
        super().__init__(**options)
        self._speculator = speculator
        self._head, self._work = Head.room(speculator), Work.room(speculator)
        self._desk: Desk | None = None
        self._desk_text = self._desk_newest = np.empty(0, np.int32)
        self._has_state = False
        self._grown = grown = Grown.room()
        self._rows_of = [
            Rows(
                grown.tokens[:count],
                grown.offsets[:count],
                grown.mask[: count * count].reshape(count, count),
                is_chain=False,
                logits_from=0,
                masks_from=count,
            )
            for count in range(1, MOST_NODES + 2)
        ]
        """Where trees are laid out, by their nodes."""

    def begin(self, request: DraftRequest) -> None:
        """Forget the last request; the context is now ``request.prompt``."""
        super().begin(request)
        self._has_state = False
        begin_in(self._desk_for_text(0), self._prompt.stop)

    def note_state(self, last: NDArray[Any], middle: NDArray[Any]) -> None:
        """See ``protocol.Speculating``."""
        note_states(self._work.known, last, middle)
        self._has_state = True

    def asking(self) -> Asking | None:
        """See ``protocol.Speculating``."""
        undrafted = self._undrafted
        if self._room is None:
            return None
        added = undrafted[0] if len(undrafted) == 1 else np.concatenate([_NOTHING, *undrafted])
        grown = len(added) + (0 if self._committed is None else len(self._committed.tokens))
        desk = self._desk_for_text(grown)
        if self._room_text is not self._desk_text:
            return None
        start, stop = self._prompt.start, self._prompt.stop
        reached = Reached(self._coming(), added, grown, start, stop, self._has_state)
        return Asking(desk, self._room, reached)

    def asked(self, stop: int, length: int, place: int) -> None:
        """See ``protocol.Speculating``."""
        self._committed, self._match = None, (length, place)
        self._undrafted.clear()
        self._prompt.grew_to(stop)

    def stepped(self, tokens: TokenArray, brought: int) -> None:
        """See ``protocol.Speculating``."""
        self._accepted, self._has_state = brought, True
        if len(tokens):
            self._undrafted.append(tokens)

    def ask(self, odds: Odds, nodes: int) -> tuple[int, int, DraftTree]:
        """See ``protocol.Speculating``."""
        asking = self.asking()
        if asking is None:
            return self._ask_in_turn(odds, nodes)
        length, place, kind, chain, count = ask_in(*asking, odds, nodes)
        if length == NOT_COMMITTED:
            return self._ask_in_turn(odds, nodes)
        self.asked(asking.reached.stop + asking.reached.grown, length, place)
        return kind, chain, self._guessed(count)

    def speculate(self, odds: Odds, nodes: int) -> DraftTree:
        """See ``protocol.Speculating``."""
        if not self._has_state or self._prompt.is_empty:
            return DraftTree.empty()
        desk, prompt = self._desk_for_text(0), self._prompt
        return self._guessed(
            speculate_in(desk, prompt.start, prompt.stop, *self._match, nodes, odds)
        )

    def _ask_in_turn(self, odds: Odds, nodes: int) -> tuple[int, int, DraftTree]:
        """``ask`` by one question after another, where memory has to be made first."""
        kind, chain = choose(odds, self.match(), self._has_state)
        if not self._prompt.is_empty:
            self._room_for(USUAL_NODES, self._prices)
        if kind != Draft.SPECULATION:
            return kind, chain, DraftTree.empty()
        return kind, chain, self.speculate(odds, nodes)

    def _guessed(self, count: int) -> DraftTree:
        """The tree of the first ``count`` nodes that were grown."""
        if not count:
            return DraftTree.empty()
        nodes = self._grown.nodes
        self._unlearnt = DraftTree(
            nodes.tokens[:count].copy(),
            nodes.parents[:count].copy(),
            nodes.chances[:count].copy(),
            nodes.sources[:count].copy(),
            rows=self._rows_of[count],
        )
        return self._unlearnt

    def commit(self, tree: DraftTree, path: list[int], tokens: NDArray[np.int32]) -> None:
        """The context grew by ``tokens``; the state that was noted is of the step before."""
        self._has_state = False
        super().commit(tree, path, tokens)

    def _desk_for_text(self, grown: int) -> Desk:
        """What growing reads and writes, with the text as it is, and room for so many tokens."""
        text = self._prompt.tokens_with(grown + MOST_SEEN)
        newest = self._prompt.newest
        if self._desk is None or self._desk_text is not text or self._desk_newest is not newest:
            self._desk_text, self._desk_newest = text, newest
            self._desk = desk_of(
                *(self._speculator, self._head, self._work, self._grown),
                *(text, self._prompt.previous, newest),
            )
        return self._desk


def warm_up(speculator: Speculator) -> None:
    """Compile (or load the compiled form of) what speculating calls."""
    drafter = SpeculatingMixture(speculator, weights=Weights.random(0))
    drafter.begin(DraftRequest(np.array([1, 2, 1, 2, 1], np.int32)))
    state = np.zeros(speculator.state_width // 2, row_dtype(np.int16))
    ones = np.ones(len(CHANCES))
    chains = Chains(ones.astype(np.int64), ones, ones, 1.0, 0.1, ones[:5], np.zeros(5))
    odds = Choice(Trust()).odds(chains)
    for _ in range(2):
        drafter.note_state(state, state)
        drafter.ask(odds, 4)
        drafter.commit(drafter.speculate(odds, 4), [], np.array([2], np.int32))
