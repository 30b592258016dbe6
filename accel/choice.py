"""What a step drafts: nothing, a chain behind the text's longest match, what a speculator guesses,
or a tree of all that is known.

Where a forward takes long, a tree is always worth its time. Where it takes a fifth of a millisecond
a tree takes half as long, and so it is worth that where a long match promises much; but a few rows
more cost next to nothing there, and neither does a chain of what followed the match last (prompt
lookup). Behind short matches a speculator, which takes a tenth of a small forward, brings more.
"""

from __future__ import annotations

import time
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree
from accel.sources.protocol import Matcher, Speculating
from accel.trust import Trust


class Draft(IntEnum):
    """What a step drafts."""

    NOTHING = 0
    CHAIN = 1
    SPECULATION = 2
    TREE = 3


MADE_AT_ONCE = Draft.CHAIN, Draft.SPECULATION
"""What is drafted where it is chosen."""


class Chain(NamedTuple):
    """The chain of as many nodes as pay, how many are expected to be accepted, and what that saves
    in seconds, drafting left out."""

    nodes: int
    accepted: float
    saved_s: float


class Chains(NamedTuple):
    """Seconds of a plain step, and the best chains by the length of their match: those of
    ``FIRST``, then those of ``RUNS``. node_s: seconds that one of a speculator's few nodes takes in
    the forward."""

    plain_s: float
    best: list[Chain]
    node_s: float


FIRST = (0.0, 0.28, 0.40, 0.59, 0.67, 0.73, 0.75, 0.80, 0.81, 0.90)
"""Chance of the token that followed, where the text's end stands earlier for 0, 1, .. tokens."""
NEXT = (0.0, 0.64, 0.72, 0.75, 0.78, 0.80, 0.81, 0.83, 0.84, 0.88)
"""Chance of every token behind that, after those before it."""
MORE = (0.73, 0.48, 0.33, 0.31, 0.24, 0.25, 0.23, 0.28, 0.22, 0.2)
"""Accepted tokens that a tree brings beyond a chain. ``redraft train matches`` finds all three, on
lines that the embedded model fills into installed packages; the last is -0.35 there, of trees that
a fast forward keeps small."""

SPECULATED = (1.1, 1.2, 1.5, 1.7, 1.8, 1.9, 2.2, 2.3, 2.3, 2.7)
"""Accepted tokens that a speculator brings, by the length of the match; found as the others."""

RUNS = (4, 8, 16, 32, 64, 128)
"""A run of drafted tokens that was right so far goes on for k more with chance run / (run + k)."""
MOST_NODES, SPECULATED_NODES = 64, 5
"""Nodes of a chain and of a speculator's tree at most."""

_TREE_COSTS, _CHAIN_COSTS, _DRAWN_COSTS = 4.0, 2.0, 8.0
"""What a tree, a chain, and a chain where tokens are drawn has to save to be made, in its own time:
the rest goes for rows behind cold caches, for learning and for doubt, and drawing takes logits of
all rows. Compared on functions of installed packages: 2 for trees loses a tenth, 8 nothing."""
_SPECULATION_COSTS = 1.0
"""The same of a speculator: less doubt, since it says itself how sure it is."""
_FREELY_DRAWN = 0.5
"""Temperature from which other tokens than the likeliest are drawn often."""
_USUAL_CHAIN_S, _USUAL_SPECULATION_S = 2e-5, 2.5e-5
_USUAL_SPECULATED = 4
"""Nodes of a speculator's tree."""
_NEW_SHARE = 0.1
_LEAST_CHANCE, _MOST_CHANCE = 0.04, 0.5
_MOST_LIKELY = 3.0
_MOST_UNASKED = 7


def _chances() -> NDArray[np.float64]:
    """Chance that a chain is right up to each node, float64 [matches + runs, MOST_NODES]."""
    first, following = np.array(FIRST)[:, None], np.array(NEXT)[:, None]
    runs, nodes = np.array(RUNS)[:, None], np.arange(MOST_NODES)
    return np.concatenate([first * following**nodes, runs / (runs + nodes + 1)])


CHANCES = _chances()


class Hope:
    """What drafts of one kind brought, over what was hoped for."""

    def __init__(self, prior: float, decay: float) -> None:
        """The prior is what is taken to have come true before; what was seen counts less with
        every step, by ``decay``."""
        self._prior, self._decay = prior, decay
        self._brought = self._hoped = prior

    @property
    def likely(self) -> float:
        """Accepted tokens for each that was hoped for."""
        return self._brought / self._hoped

    def learn(self, hoped: float, accepted: int) -> None:
        """So many tokens were hoped for and came."""
        self.fade()
        self._hoped += hoped
        self._brought += min(accepted, _MOST_LIKELY * hoped)

    def fade(self) -> None:
        """A step passed. While nothing is drafted, nothing is learnt, and what was learnt fades."""
        self._hoped = self._prior + self._decay * (self._hoped - self._prior)
        self._brought = self._prior + self._decay * (self._brought - self._prior)


class Choice:
    """Chooses for one request, by what drafts brought so far."""

    def __init__(self, trust: Trust, *, temperature: float = 0.0) -> None:
        """``trust`` knows the machine's pace and what trees take; ``temperature`` is that of
        sampling, for which logits of all rows are computed."""
        self._trust = trust
        draws = temperature > 0
        self._chain_costs = _DRAWN_COSTS if draws else _CHAIN_COSTS
        self._speculation_costs = _DRAWN_COSTS if draws else _SPECULATION_COSTS
        self._took = {Draft.CHAIN: _USUAL_CHAIN_S, Draft.SPECULATION: _USUAL_SPECULATION_S}
        # A speculator is asked nearly always, so it is believed less when it was wrong, and where
        # tokens are drawn of which it knows the likeliest alone, for longer.
        self._matched = Hope(6.0, 0.9)
        freely = temperature >= _FREELY_DRAWN
        self._speculated = Hope(1.0, 0.99) if freely else Hope(2.0, 0.95)
        self._hopes = 0.0
        self._run = 0
        self._hopeless = self._unasked = 0
        self.kind = Draft.NOTHING
        """What was drafted last."""
        self.took_s = 0.0
        """What the last question took, and what was drafted. A tree is timed by who makes it."""

    @property
    def will_ask(self) -> bool:
        """Whether the next ``draft`` looks at anything."""
        return self._unasked == 0

    def draft(
        self, matcher: Matcher, chains: Chains, room: int, speculator: Speculating | None = None
    ) -> DraftTree | None:
        """What is worth its time, of ``room`` nodes at most; None where that is a tree."""
        self.kind, self.took_s = Draft.NOTHING, 0.0
        if self._unasked > 0:
            self._unasked -= 1
            return DraftTree.empty()
        started = time.perf_counter()
        self.kind, nodes = self.of(matcher.match(), chains, speculates=speculator is not None)
        tree = DraftTree.empty()
        if self.kind == Draft.CHAIN:
            tree = matcher.chain(min(nodes, room))
        elif self.kind == Draft.SPECULATION and speculator is not None:
            least = chains.node_s / (chains.plain_s * self._speculated.likely)
            least = min(max(least, _LEAST_CHANCE), _MOST_CHANCE)
            tree = speculator.speculate(min(SPECULATED_NODES, room), least)
        self.took_s = took_s = time.perf_counter() - started
        if self.kind == Draft.TREE:
            return None
        if self.kind in self._took:
            # One slow draft, after which none is made, would never be corrected.
            usual_s = self._took[self.kind]
            self._took[self.kind] += _NEW_SHARE * (min(took_s, 2 * usual_s) - usual_s)
            if not len(tree):
                self.learn(0, 0)
        return tree

    def of(self, match: int, chains: Chains, *, speculates: bool = False) -> tuple[Draft, int]:
        """What to draft where the text's end stands earlier for ``match`` tokens, and nodes of a
        chain. ``speculates``: whether there is a speculator."""
        found = min(match, len(FIRST) - 1)
        place = found
        if found >= RUNS[0] and self._run >= RUNS[0]:
            place = len(FIRST) + min(self._run.bit_length() - RUNS[0].bit_length(), len(RUNS) - 1)
        nodes, accepted, saved_s = chains.best[place]
        likely, pace = self._matched.likely, self._trust.pace
        if speculates and found < RUNS[0]:
            # Long runs that came true promise nothing for short matches, where a speculator knows
            # more.
            likely = min(likely, 1.0)
        more_s = MORE[found] * min(likely, 1.0) * chains.plain_s
        chain_s = saved_s * likely * pace - self._chain_costs * self._took[Draft.CHAIN]
        tree_s = (saved_s * likely + more_s) * pace - _TREE_COSTS * self._trust.draft_s
        speculated_s = self._saved_by_speculating(found, chains) if speculates else 0.0
        if max(chain_s, tree_s, speculated_s) <= 0:
            self._matched.fade()
            self._speculated.fade()
            self._hopeless += 1
            # Asking takes a tenth of a small forward: less often while there is nothing to hope.
            self._unasked = min(self._hopeless // 2, _MOST_UNASKED)
            return Draft.NOTHING, 0
        self._hopeless //= 2
        if speculated_s > max(chain_s, tree_s):
            self._hopes = SPECULATED[found]
            return Draft.SPECULATION, 0
        if tree_s > chain_s:
            self._hopes = accepted + MORE[found]
            return Draft.TREE, 0
        self._hopes = accepted
        return Draft.CHAIN, nodes

    def learn(self, nodes: int, accepted: int) -> None:
        """Of the last draft, of so many nodes, so many tokens were right."""
        self._run = self._run + accepted if accepted == nodes else 0
        hope = self._speculated if self.kind == Draft.SPECULATION else self._matched
        hope.learn(self._hopes, accepted)

    def _saved_by_speculating(self, found: int, chains: Chains) -> float:
        """Seconds that a speculator is expected to save behind a match of ``found`` tokens."""
        accepted = SPECULATED[found] * self._speculated.likely
        saved_s = accepted * chains.plain_s - _USUAL_SPECULATED * chains.node_s
        return saved_s * self._trust.pace - self._speculation_costs * self._took[Draft.SPECULATION]
