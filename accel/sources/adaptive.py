"""Adaptive tokens in one forward: mask rows behind the likely ends of a draft tree guess on.

While a forward verifies, rows behind the nodes where the text is likely to stop already guess what
comes after the token that is chosen there (BiTA, Lin et al. 2024, has the idea). The next tree
begins with these guesses, merged with what other sources know, so no forward is spent on drafting.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, TokenArray
from accel.mask_planner import MOST_GROUPS, fit_with_masks, likely_stops
from accel.mask_tokens import MaskTokens, Sampler
from accel.rows import MaskGroups
from accel.sources import adaptive_mixture
from accel.sources.acceptance import Weights
from accel.sources.adaptive_mixture import ROW_SHARE
from accel.sources.guessed_tree import merge
from accel.sources.guesses import Floats, Group, shortlist
from accel.sources.joint_tree import joint_tree
from accel.sources.mixture import MixtureDrafter
from accel.sources.pooling import POOLING
from accel.sources.protocol import Drafter, DraftRequest

FIRST_GAIN = 0.9
"""Tokens that a group is taken to bring before anything is known."""
LEAST_ROOM, MOST_ROOM = 16, 1 << 20
"""Nodes that the other drafter is asked for: all at first, later by what was verified."""
FADING = 0.9
LEAST_GAIN = 0.02
_NO_CHANCES = np.empty(0, np.float32)


class AdaptiveDrafter:
    """Mask rows and, where there is one, another drafter.

    ``gains`` say how many more tokens a tree is expected to bring for the guesses of each row, if
    the text stops where the group hangs; ``cost_s`` what merging guesses into a tree takes.
    """

    name = "adaptive"

    def __init__(
        self,
        mask_tokens: MaskTokens,
        other: Drafter | None = None,
        *,
        size: int = 0,
        most_groups: int = MOST_GROUPS,
        rows: int = 0,
    ) -> None:
        """``size``: mask rows of a group, as many as were trained when 0. Where no planner decides:
        ``rows``, nodes and mask rows together, shared out by what they are expected to bring, or
        with 0 ``most_groups`` groups behind the whole tree."""
        assert mask_tokens.sampler is not None, "these mask tokens come without a sampler"
        self._tokens = mask_tokens
        self._sampler = mask_tokens.sampler
        self._pooling = POOLING if mask_tokens.pooling is None else mask_tokens.pooling
        self._other = other
        self.size = size or mask_tokens.count
        shares = ROW_SHARE ** np.arange(self.size)
        self._shares = shares / shares.sum()
        self._gain = FIRST_GAIN
        self.cost_s = 0.0
        self._most_groups = most_groups
        self._equal_costs = np.ones(rows + 2) if rows else None
        self._shared_out = MaskGroups.none()
        self._room = MOST_ROOM
        self._group: Group | None = None
        self._coming: Group | None = None
        self._learnt: tuple[DraftTree, TokenArray] | None = None
        """The other drafter's view of the tree, and which of its nodes each node is, or -1."""
        self._expected = _NO_CHANCES, _NO_CHANCES

    @property
    def gains(self) -> NDArray[np.float64]:
        """Of the first, second, … row of a group."""
        return self._gain * self._shares

    def begin(self, request: DraftRequest) -> None:
        """Begin in the other drafter; nothing is guessed yet."""
        self._group = self._coming = self._learnt = None
        self._room = MOST_ROOM
        if self._other is not None:
            self._other.begin(request)

    def draft(self, max_nodes: int) -> DraftTree:
        """What the other drafter and the guesses of the last forward say, in one tree."""
        tree = self._whole(max_nodes)
        if self._equal_costs is not None:
            seconds = self._equal_costs[: max_nodes + 2]
            tree, self._shared_out = fit_with_masks(tree, 1, seconds, 1.0, 0.0, self.gains, 0.0)
        return tree

    def _whole(self, max_nodes: int) -> DraftTree:
        room = min(max_nodes, self._room)
        group, self._learnt = self._group, None
        if group is None or max_nodes <= 0:
            return self._other.draft(room) if self._other is not None else DraftTree.empty()
        started = time.thread_time()
        if isinstance(self._other, MixtureDrafter):
            tree, alone = self._joined(self._other, group, room)
        else:
            tree, alone = self._merged(group, room)
        spent = time.thread_time() - started
        self.cost_s = FADING * self.cost_s + (1 - FADING) * spent if self.cost_s else spent
        self._expected = tree.probabilities, alone
        return tree

    def _joined(self, other: MixtureDrafter, group: Group, room: int) -> tuple[DraftTree, Floats]:
        """One tree of retrieval and guesses, and chances of nodes as retrieval alone has them."""
        tokens = shortlist(group, DraftTree.empty())
        head = self._tokens.head_of(tokens)
        tree, known = joint_tree(other, group, self._sampler, tokens, head, self._pooling, room)
        self._learnt = known, np.arange(len(known), dtype=np.int32)
        return tree, known.probabilities

    def _merged(self, group: Group, room: int) -> tuple[DraftTree, Floats]:
        """Another drafter's tree with guesses merged into it, and chances of nodes as that drafter
        alone has them."""
        other = self._other.draft(room) if self._other is not None else DraftTree.empty()
        tokens = shortlist(group, other)
        head = self._tokens.head_of(tokens)
        tree, nodes = merge(group, self._sampler, tokens, head, other, room)
        self._learnt = other, nodes
        return tree, other.probabilities

    def groups(self, tree: DraftTree) -> MaskGroups:
        """Behind the nodes where the text is likeliest to stop."""
        if self._equal_costs is not None:
            return self._shared_out
        return likely_stops(tree, self.size, self._most_groups)

    def guess(self, logits: Floats, states: Floats, token: int) -> None:
        """A group stood where the text stopped. logits float32 [size, vocabulary] and states
        float32 [size, width] of its rows; ``token`` is what was chosen there."""
        self._coming = Group(logits, states, token)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Let the other drafter learn from that part of its tree which was verified."""
        if self._learnt is not None and self._group is not None:
            self._learn_gain(len(tree), len(self._group.states))
        self._group, self._coming = self._coming, None
        # Where a planner cuts trees to a few nodes, drafting many is in vain.
        if len(tree):
            self._room = LEAST_ROOM + 2 * len(tree)
        if self._other is not None:
            self._other.commit(*self._verified(tree, path), tokens)
        self._learnt = None

    def _learn_gain(self, nodes: int, rows: int) -> None:
        """Of a tree cut to ``nodes``: how much more it was expected to bring than the best as large
        without guesses. A group of fewer rows tells what a whole one would have brought."""
        chances, alone = self._expected
        best = np.sort(alone)[::-1][:nodes]
        more = float(chances[:nodes].sum() - best.sum()) / float(self._shares[:rows].sum())
        self._gain = max(FADING * self._gain + (1 - FADING) * more, LEAST_GAIN)

    def _verified(self, tree: DraftTree, path: list[int]) -> tuple[DraftTree, list[int]]:
        """The other drafter's tree as far as all of it was verified, and the path in it."""
        if self._learnt is None:
            return tree, path
        other, nodes = self._learnt
        nodes = nodes[: len(tree)]
        verified = np.zeros(len(other) + 1, np.bool_)
        verified[nodes[nodes >= 0]] = True
        count = int(np.argmin(verified))
        way: list[int] = []
        for node in path:
            if not 0 <= nodes[node] < count:
                break
            way.append(int(nodes[node]))
        return other.prefix(count), way


def warm_up() -> None:
    """Compile (or load the compiled form of) what guessing beside retrieval calls."""
    square = np.zeros((8, 8), np.float32)
    sampler = Sampler(square, square.copy(), square.copy(), np.zeros((16, 8), np.float32))
    group = Group(np.zeros((1, 16), np.float32), np.zeros((1, 8), np.float32), 1)
    drafter = MixtureDrafter(weights=Weights.random(0))
    drafter.begin(DraftRequest(np.array([1, 2, 1, 2, 1], np.int32)))
    tokens = shortlist(group, DraftTree.empty())
    head = np.zeros((len(tokens), 8), np.float32)
    tree = joint_tree(drafter, group, sampler, tokens, head, POOLING, 4).tree
    fit_with_masks(tree, 1, np.ones(8), 1.0, 0.0, np.ones(1), 0.0)
    adaptive_mixture.warm_up()
