"""The default drafter of models with adaptive tokens: retrieval and mask rows, planned as one.

A tree is grown from both while it pays, and mask rows hang behind the nodes where the text is
likely to stop, as many as bring more tokens than they cost.
"""

from __future__ import annotations

import time

import numpy as np

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.matmul import BLOCK
from accel.rows import MaskGroups
from accel.sources.acceptance import Floats, Weights
from accel.sources.joint_growth import Ahead, ahead_of, grow_joint_in, note_in, outcome_room
from accel.sources.mixture import STEP_S, MixtureDrafter
from accel.sources.pooling import POOLING
from accel.sources.protocol import DraftRequest, Prices
from accel.sources.sampler import Tables, noted_room

FIRST_GAIN = 0.6
"""Accepted tokens that a group is taken to bring before anything is known."""
LEAST_GAIN = 0.02
NEW_SHARE, UNTRIED_SHARE = 0.08, 0.01
"""Of what a group just brought, and of ``FIRST_GAIN`` where none was used, in the running mean."""
ROW_SHARE = 0.55
"""Of what one row brings, the next one brings so much."""
FADING = 0.9
_ADAPTIVE = int(Source.ADAPTIVE)


class AdaptiveMixture:
    """Drafts as ``mixture`` does, and from what mask rows of the last forward said."""

    name = "redraft"

    step_s = STEP_S

    def __init__(self, size: int, retrieval: MixtureDrafter, tables: Tables) -> None:
        """``size``: mask rows of a group at most; ``tables`` may be shared by drafters."""
        self._retrieval = retrieval
        self._tables = tables
        shares = ROW_SHARE ** np.arange(size)
        self._shares = shares / shares.sum()
        self._noted = noted_room(tables, size)
        self._outcome = outcome_room(0)
        self._ahead: Ahead | None = None
        self._groups = MaskGroups.none()
        self._has_news = False
        self._noted_before = 0
        self._gain = FIRST_GAIN
        self._with_s = self._without_s = self._noting_s = 0.0

    @property
    def calibration(self) -> object:
        """What retrieval has learnt."""
        return self._retrieval.calibration

    @property
    def gains(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Of the first, second, … row of a group."""
        return self._gain * self._shares

    @property
    def cost_s(self) -> float:
        """What noting a group and growing from it takes beyond growing without."""
        if not self._with_s or not self._without_s:
            return self._noting_s
        return self._noting_s + max(self._with_s - self._without_s, 0.0)

    @property
    def saved_s(self) -> float:
        """Seconds that the last tree of ``draft_within`` is expected to save, mask rows counted."""
        return float(self._outcome.facts[1])

    def begin(self, request: DraftRequest) -> None:
        """Forget the last request; nothing is guessed yet."""
        self._noted.counts[:] = 0
        self._has_news = False
        self._groups = MaskGroups.none()
        self._retrieval.begin(request)

    def draft(self, max_nodes: int) -> DraftTree:
        """A tree of at most ``max_nodes`` nodes in decreasing path probability, of which no mask
        rows hang."""
        return self._grown(max_nodes, Prices.free(max_nodes), 0.0)

    def draft_within(self, max_nodes: int, prices: Prices) -> DraftTree:
        """The tree, and mask rows behind it, with the most expected tokens per second."""
        return self._grown(max_nodes, prices, self._gain if prices.masks else 0.0)

    def groups(self, tree: DraftTree) -> MaskGroups:
        """The mask rows that were planned with the last tree."""
        return self._groups

    def guess(self, logits: Floats, states: Floats, token: int) -> None:
        """A group stood where the text stopped. logits float32 [rows, vocabulary] and states
        float32 [rows, width] of its rows; ``token`` is what was chosen there."""
        started = time.thread_time()
        note_in(
            self._ahead_for(0),
            np.ascontiguousarray(logits, np.float32),
            np.ascontiguousarray(states, np.float32),
            token,
            len(self._tables.by_token),
        )
        self._has_news = True
        self._noting_s = _faded(self._noting_s, time.thread_time() - started)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Let retrieval learn from what was verified; what mask rows said holds for one tree."""
        self._learn_gain(tree, path)
        if not self._has_news:
            self._noted.counts[0] = 0
        self._has_news = False
        self._retrieval.commit(tree, path, tokens)

    def _learn_gain(self, tree: DraftTree, path: list[int]) -> None:
        """Of what was accepted, all from the first guess on would not have been drafted without,
        but other nodes would. A group of fewer rows tells what a whole one would have brought."""
        rows = self._noted_before
        if not rows or not len(tree):
            self._gain += UNTRIED_SHARE * (FIRST_GAIN - self._gain)
            return
        sources = tree.sources[path].tolist()
        guessed = sources.index(_ADAPTIVE) if _ADAPTIVE in sources else len(path)
        brought = len(path) - guessed - float(self._outcome.facts[2])
        brought /= float(self._shares[:rows].sum())
        self._gain = max(self._gain + NEW_SHARE * (brought - self._gain), LEAST_GAIN)

    def _grown(self, max_nodes: int, prices: Prices, gain: float) -> DraftTree:
        started = time.thread_time()
        self._groups = MaskGroups.none()
        rows = self._noted_before = int(self._noted.counts[0])
        found = self._retrieval.prepared(max_nodes, prices)
        if found is None:
            return DraftTree.empty()
        ahead, outcome, trust = self._ahead_for(max_nodes), self._outcome, prices.trust
        count = grow_joint_in(*found[:1], ahead, *found[1:], max_nodes, trust, gain, self.cost_s)
        tree = self._retrieval.grown(count, outcome.chances, outcome.shown)
        groups = int(outcome.facts[0])
        if groups:
            places, sizes = outcome.places[:groups].copy(), outcome.sizes[:groups].copy()
            self._groups = MaskGroups(places, sizes)
        spent = time.thread_time() - started
        if rows:
            self._with_s = _faded(self._with_s, spent)
        else:
            self._without_s = _faded(self._without_s, spent)
        return tree

    def _ahead_for(self, nodes: int) -> Ahead:
        """What growing takes, with room for so many nodes."""
        if self._ahead is None or nodes > len(self._outcome.chances):
            self._outcome = outcome_room(max(nodes, len(self._outcome.chances)))
            self._ahead = ahead_of(self._tables, self._shares, self._noted, self._outcome)
        return self._ahead


def _faded(mean: float, value: float) -> float:
    """A running mean that begins with the first value."""
    return FADING * mean + (1 - FADING) * value if mean else value


def warm_up() -> None:
    """Compile (or load the compiled form of) all that is called here."""
    square, rows = np.zeros((1, 16, BLOCK), np.int32), np.zeros((8, BLOCK), np.float32)
    tables = Tables(square, square.copy(), rows, rows.copy(), POOLING)
    drafter = AdaptiveMixture(2, MixtureDrafter(weights=Weights.random(0)), tables)
    drafter.begin(DraftRequest(np.array([1, 2, 1, 2, 1], np.int32)))
    drafter.guess(np.zeros((1, 64), np.float32), np.zeros((1, BLOCK), np.float32), 1)
    tree = drafter.draft_within(4, Prices(np.ones(8), np.zeros(8), 1.0, True))
    drafter.commit(tree, [], np.array([2], np.int32))
