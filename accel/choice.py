"""What a step drafts: nothing, a chain behind the text's longest match, or a tree.

Where a forward takes long, a tree is always worth its time. Where it takes a fifth of a millisecond
a tree takes half as long, and so it is worth that where a long match promises much; but a few rows
more cost next to nothing there, and neither does a chain of what followed the match last (prompt
lookup).
"""

from __future__ import annotations

import time
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree
from accel.sources.protocol import Matcher
from accel.trust import Trust


class Draft(IntEnum):
    """What a step drafts."""

    NOTHING = 0
    CHAIN = 1
    TREE = 2


class Chain(NamedTuple):
    """The chain of as many nodes as pay, how many are expected to be accepted, and what that saves
    in seconds, drafting left out."""

    nodes: int
    accepted: float
    saved_s: float


class Chains(NamedTuple):
    """Seconds of a plain step, and the best chains by the length of their match: those of
    ``FIRST``, then those of ``RUNS``."""

    plain_s: float
    best: list[Chain]


FIRST = (0.0, 0.28, 0.40, 0.59, 0.67, 0.73, 0.75, 0.80, 0.81, 0.90)
"""Chance of the token that followed, where the text's end stands earlier for 0, 1, .. tokens."""
NEXT = (0.0, 0.64, 0.72, 0.75, 0.78, 0.80, 0.81, 0.83, 0.84, 0.88)
"""Chance of every token behind that, after those before it."""
MORE = (0.73, 0.48, 0.33, 0.31, 0.24, 0.25, 0.23, 0.28, 0.22, 0.2)
"""Accepted tokens that a tree brings beyond a chain. ``redraft train matches`` finds all three, on
lines that the embedded model fills into installed packages; the last is -0.35 there, of trees that
a fast forward keeps small."""

RUNS = (4, 8, 16, 32, 64, 128)
"""A run of drafted tokens that was right so far goes on for k more with chance run / (run + k)."""
MOST_NODES = 64

_TREE_COSTS, _CHAIN_COSTS, _DRAWN_COSTS = 4.0, 2.0, 8.0
"""What a tree, a chain, and a chain where tokens are drawn has to save to be made, in its own time:
the rest goes for rows behind cold caches, for learning and for doubt, and drawing takes logits of
all rows. Compared on functions of installed packages: 2 for trees loses a tenth, 8 nothing."""
_USUAL_CHAIN_S = 2e-5
_NEW_SHARE = 0.1
_LIKELY_PRIOR, _LIKELY_DECAY, _MOST_LIKELY = 6.0, 0.9, 3.0
_MOST_UNASKED = 7


def _chances() -> NDArray[np.float64]:
    """Chance that a chain is right up to each node, float64 [matches + runs, MOST_NODES]."""
    first, following = np.array(FIRST)[:, None], np.array(NEXT)[:, None]
    runs, nodes = np.array(RUNS)[:, None], np.arange(MOST_NODES)
    return np.concatenate([first * following**nodes, runs / (runs + nodes + 1)])


CHANCES = _chances()


class Choice:
    """Chooses for one request, by what drafts brought so far."""

    def __init__(self, trust: Trust, *, draws: bool = False) -> None:
        """``trust`` knows the machine's pace and what trees take; ``draws``: tokens are drawn, for
        which logits of all rows are computed."""
        self._trust = trust
        self._chain_costs = _DRAWN_COSTS if draws else _CHAIN_COSTS
        self._chain_s = _USUAL_CHAIN_S
        self._brought = self._hoped = _LIKELY_PRIOR
        self._hopes = 0.0
        self._run = 0
        self._hopeless = self._unasked = 0
        self.is_chain = False
        """Whether the last draft was a chain."""
        self.took_s = 0.0
        """What the last question took, and the chain behind it. A tree is timed by who makes it."""

    def draft(self, matcher: Matcher, chains: Chains, room: int) -> DraftTree | None:
        """Nothing, or a chain of ``room`` nodes at most; None where a tree is worth its time."""
        self.is_chain, self.took_s = False, 0.0
        if self._unasked > 0:
            self._unasked -= 1
            return DraftTree.empty()
        started = time.perf_counter()
        kind, nodes = self.of(matcher.match(), chains)
        self.is_chain = kind == Draft.CHAIN
        tree = matcher.chain(min(nodes, room)) if self.is_chain else DraftTree.empty()
        self.took_s = time.perf_counter() - started
        if not self.is_chain:
            return None if kind == Draft.TREE else tree
        # One slow draft, after which none is made, would never be corrected.
        self._chain_s += _NEW_SHARE * (min(self.took_s, 2 * self._chain_s) - self._chain_s)
        return tree

    def of(self, match: int, chains: Chains) -> tuple[Draft, int]:
        """What to draft where the text's end stands earlier for ``match`` tokens, and nodes of a
        chain."""
        found = min(match, len(FIRST) - 1)
        place = found
        if found >= RUNS[0] and self._run >= RUNS[0]:
            place = len(FIRST) + min(self._run.bit_length() - RUNS[0].bit_length(), len(RUNS) - 1)
        nodes, accepted, saved_s = chains.best[place]
        likely, pace = self._brought / self._hoped, self._trust.pace
        more_s = MORE[found] * min(likely, 1.0) * chains.plain_s
        chain_s = saved_s * likely * pace - self._chain_costs * self._chain_s
        tree_s = (saved_s * likely + more_s) * pace - _TREE_COSTS * self._trust.draft_s
        if max(chain_s, tree_s) <= 0:
            self._fade()
            self._hopeless += 1
            # Asking takes a tenth of a small forward: less often while there is nothing to hope.
            self._unasked = min(self._hopeless // 2, _MOST_UNASKED)
            return Draft.NOTHING, 0
        self._hopeless //= 2
        if tree_s > chain_s:
            self._hopes = accepted + MORE[found]
            return Draft.TREE, 0
        self._hopes = accepted
        return Draft.CHAIN, nodes

    def learn(self, nodes: int, accepted: int) -> None:
        """Of the last draft, of so many nodes, so many tokens were right."""
        self._run = self._run + accepted if accepted == nodes else 0
        self._fade()
        self._hoped += self._hopes
        self._brought += min(accepted, _MOST_LIKELY * self._hopes)

    def _fade(self) -> None:
        """While nothing is drafted, nothing is learnt, and what was learnt fades."""
        self._hoped = _LIKELY_PRIOR + _LIKELY_DECAY * (self._hoped - _LIKELY_PRIOR)
        self._brought = _LIKELY_PRIOR + _LIKELY_DECAY * (self._brought - _LIKELY_PRIOR)
