"""Adaptive tokens in one forward: mask rows behind the likely ends of a draft tree guess on.

While a forward verifies, rows behind the nodes where the text is likely to stop already guess what
comes after the token that is chosen there (BiTA, Lin et al. 2024, has the idea). The next tree
begins with these guesses, merged with what other sources know, so no forward is spent on drafting.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.mask_planner import MOST_GROUPS, fit_with_masks, likely_stops
from accel.mask_tokens import MaskTokens, Sampler
from accel.rows import MaskGroups
from accel.sources.guesses import Floats, Group, Merged, merge, shortlist
from accel.sources.protocol import Drafter, DraftRequest

FIRST_GAIN = 0.9
"""Tokens that a group is taken to bring before anything is known."""
LEAST_ROOM, MOST_ROOM = 16, 1 << 20
"""Nodes that the other drafter is asked for: all at first, later by what was verified."""
_ROW_SHARE = 0.55
"""Of what one row brings, the next one brings so much."""
_FADING = 0.9


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
    ) -> None:
        """``size``: mask rows of a group, as many as were trained when 0; ``most_groups``: groups
        of a forward that no planner has decided on."""
        assert mask_tokens.sampler is not None, "these mask tokens come without a sampler"
        self._tokens = mask_tokens
        self._sampler = mask_tokens.sampler
        self._other = other
        self.size = size or mask_tokens.count
        shares = _ROW_SHARE ** np.arange(self.size)
        self._shares = shares / shares.sum()
        self._gain = FIRST_GAIN
        self.cost_s = 0.0
        self._most_groups = most_groups
        self._room = MOST_ROOM
        self._group: Group | None = None
        self._coming: Group | None = None
        self._drafted: Merged | None = None
        self._other_tree = DraftTree.empty()

    @property
    def gains(self) -> NDArray[np.float64]:
        """Of the first, second, … row of a group."""
        return self._gain * self._shares

    def begin(self, request: DraftRequest) -> None:
        """Begin in the other drafter; nothing is guessed yet."""
        self._group = self._coming = self._drafted = None
        self._room = MOST_ROOM
        if self._other is not None:
            self._other.begin(request)

    def draft(self, max_nodes: int) -> DraftTree:
        """The other drafter's tree and the guesses of the last forward, merged."""
        room = min(max_nodes, self._room)
        other = self._other.draft(room) if self._other is not None else DraftTree.empty()
        self._other_tree = other
        self._drafted = None
        if self._group is None or max_nodes <= 0:
            return other
        started = time.perf_counter()
        tokens = shortlist(self._group, other)
        head = self._tokens.head_of(tokens)
        self._drafted = merge(self._group, self._sampler, tokens, head, other, room)
        tree = self._drafted.tree
        spent = time.perf_counter() - started
        self.cost_s = _FADING * self.cost_s + (1 - _FADING) * spent if self.cost_s else spent
        more = float(tree.probabilities.sum()) - float(other.probabilities.sum())
        # A group of fewer rows tells what a whole one would have brought.
        more /= float(self._shares[: len(self._group.states)].sum())
        self._gain = max(_FADING * self._gain + (1 - _FADING) * more, 0.02)
        return tree

    def groups(self, tree: DraftTree) -> MaskGroups:
        """Behind the nodes where the text is likeliest to stop."""
        return likely_stops(tree, self.size, self._most_groups)

    def guess(self, logits: Floats, states: Floats, token: int) -> None:
        """A group stood where the text stopped. logits float32 [size, vocabulary] and states
        float32 [size, width] of its rows; ``token`` is what was chosen there."""
        self._coming = Group(logits, states, token)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Let the other drafter learn from that part of its tree which was verified."""
        self._group, self._coming = self._coming, None
        # Where a planner cuts trees to a few nodes, drafting many is in vain.
        if len(tree):
            self._room = LEAST_ROOM + 2 * len(tree)
        if self._other is not None:
            self._other.commit(*self._learnt(tree, path), tokens)
        self._drafted = None

    def _learnt(self, tree: DraftTree, path: list[int]) -> tuple[DraftTree, list[int]]:
        """The other drafter's tree as far as all of it was verified, and the path in it."""
        if self._drafted is None or not len(tree):
            return (tree, path) if self._drafted is None else (DraftTree.empty(), [])
        others = self._drafted.others[: len(tree)]
        verified = np.zeros(len(self._other_tree) + 1, np.bool_)
        verified[others[others >= 0]] = True
        count = int(np.argmin(verified))
        way: list[int] = []
        for node in path:
            other = int(others[node])
            if not 0 <= other < count:
                break
            way.append(other)
        return self._other_tree.prefix(count), way


def warm_up() -> None:
    """Compile (or load the compiled form of) everything that guessing calls."""
    square = np.zeros((8, 8), np.float32)
    sampler = Sampler(square, square.copy(), square.copy(), np.zeros((16, 8), np.float32))
    group = Group(np.zeros((1, 16), np.float32), np.zeros((1, 8), np.float32), 0)
    other = DraftTree.chain(np.array([1], np.int32), Source.PROMPT, 0.5)
    tokens = shortlist(group, other)
    tree = merge(group, sampler, tokens, np.zeros((len(tokens), 8), np.float32), other, 4).tree
    fit_with_masks(tree, 1, np.ones(8), 1.0, 0.0, np.ones(1), 0.0)
