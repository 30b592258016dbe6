"""What a step drafts: nothing, a chain behind the text's longest match, what a speculator guesses,
or a tree of all that is known.

Where a forward takes long, a tree is always worth its time. Where it takes a fifth of a millisecond
a tree takes half as long, and so it is worth that where a long match promises much; but a few rows
more cost next to nothing there, and neither does a chain of what followed the match last (prompt
lookup). A speculator, which takes a tenth of a small forward, brings more, and drafts what followed
a match, too: a tree beside it is worth what it brings beyond that.
"""

from __future__ import annotations

import time
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from accel.draft_tree import DraftTree
from accel.sources.compiled import FieldsType, compiled_with
from accel.sources.protocol import Matcher, Speculating
from accel.trust import Trust


class Draft(IntEnum):
    """What a step drafts."""

    NOTHING = 0
    CHAIN = 1
    SPECULATION = 2
    TREE = 3


_NOTHING, _CHAIN, _SPECULATION, _TREE = map(int, Draft)
MADE_AT_ONCE = Draft.CHAIN, Draft.SPECULATION
"""What is drafted where it is chosen."""


class Chains(NamedTuple):
    """The chains of as many nodes as pay, by the length of their match: those of ``FIRST``, then
    those of ``RUNS``.

    nodes: int64 [n]; accepted: float64 [n], how many are expected to be; saved_s: float64 [n],
    seconds that this saves, drafting left out; plain_s: seconds of a plain step; node_s: seconds
    that one of a few nodes takes in the forward; seconds, slopes: float64 [nodes + 1], of a forward
    with 0, 1, .. nodes, and the least that a node costs beyond so many.
    """

    nodes: NDArray[np.int64]
    accepted: NDArray[np.float64]
    saved_s: NDArray[np.float64]
    plain_s: float
    node_s: float
    seconds: NDArray[np.float64]
    slopes: NDArray[np.float64]


FIRST = (0.0, 0.28, 0.40, 0.59, 0.67, 0.73, 0.75, 0.80, 0.81, 0.90)
"""Chance of the token that followed, where the text's end stands earlier for 0, 1, .. tokens."""
NEXT = (0.0, 0.64, 0.72, 0.75, 0.78, 0.80, 0.81, 0.83, 0.84, 0.88)
"""Chance of every token behind that, after those before it."""
MORE = (0.73, 0.48, 0.33, 0.31, 0.24, 0.25, 0.23, 0.28, 0.22, 0.2)
"""Accepted tokens that a tree brings beyond a chain. ``redraft train matches`` finds all three, on
lines that the embedded model fills into installed packages; the last is -0.35 there, of trees that
a fast forward keeps small."""

SPECULATED = (0.95, 1.05, 1.4, 1.8, 2.3, 2.5, 2.9, 3.4, 3.5, 5.0)
"""Accepted tokens that a speculator brings, by the length of the match; found as the others."""

RUNS = (4, 8, 16, 32, 64, 128)
"""A run of drafted tokens that was right so far goes on for k more with chance run / (run + k)."""
MOST_NODES, FEW_NODES = 64, 5
"""Nodes of a draft at most, and those from which ``Chains.node_s`` is taken."""

_TREE_COSTS, _CHAIN_COSTS, _LOGIT_COSTS = 4.0, 2.0, 8.0
"""What a tree, a chain, and a chain where logits of all rows are looked at has to save to be made,
in its own time: the rest goes for rows behind cold caches, for learning and for doubt. Compared on
functions of installed packages: 2 for trees loses a tenth, 8 nothing."""
_SPECULATION_COSTS = 1.0
"""The same of a speculator: it says itself how sure it is. With 1.8 some 4 % slower."""
_USUAL_CHAIN_S, _USUAL_SPECULATION_S = 2e-5, 2.5e-5
_BESIDE_RIGHT = 1.5
"""Nodes of a speculator's tree beside those that are right."""
_NEW_SHARE = 0.1
LEAST_CHANCE, _MOST_CHANCE = 0.04, 0.5
"""Of a path below which no node is drafted, and from which the first is, however often a
speculator was wrong."""
_MOST_LIKELY = 3.0
_MOST_LEARNT = 2.0
"""Tokens hoped for in one step of a speculator that count at most."""
_FASTER = 3.0
"""A speculated token is worth a plain step over this. With drafts tokens come twice as fast, so to
wait for a node costs more of them; and rows take longer than in the profile."""
NODE_S = 5e-6
"""What a node of a speculator takes beside its row: looks, above all. Functions of installed
packages where a row costs a fifth of a plain step, by expected seconds: 122 us a token with 4.5 and
nothing, 114 with 3 and this, run-on 100 and 88; where rows cost a sixtieth 78 and 79, 42 and 43."""
_BEYOND = 4.5
"""``_FASTER`` of what a tree of all sources brings beyond a speculator's: where forwards are fast
it pays in next to no step."""
_MOST_UNASKED = 15
"""Steps without a question at most: of random text that is drawn, to ask at every eighth takes a
hundredth of the time."""


def _chances() -> NDArray[np.float64]:
    """Chance that a chain is right up to each node, float64 [matches + runs, MOST_NODES]."""
    first, following = np.array(FIRST)[:, None], np.array(NEXT)[:, None]
    runs, nodes = np.array(RUNS)[:, None], np.arange(MOST_NODES)
    return np.concatenate([first * following**nodes, runs / (runs + nodes + 1)])


CHANCES = _chances()


@structref.register
class _OddsType(FieldsType):
    """Compiled form of ``Odds``."""


class Odds(structref.StructRefProxy):
    """What compiled code chooses by, see ``odds_of``."""

    @property
    def numbers(self) -> NDArray[np.float64]:
        """See ``odds_of``."""
        return _numbers_in(self)

    @property
    def chains(self) -> Chains:
        """See ``odds_of``."""
        return _chains_in(self)


structref.define_proxy(Odds, _OddsType, ["numbers", "chains"])


@compiled_with()
def odds_of(numbers: NDArray[np.float64], chains: Chains) -> Odds:
    """The odds of a step with these chains. numbers: float64, at ``_BROUGHT`` and so on, see
    ``Choice``."""
    return Odds(numbers, chains)


@compiled_with()
def _numbers_in(odds: Any) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = odds.numbers
    return numbers


@compiled_with()
def _chains_in(odds: Any) -> Chains:
    chains: Chains = odds.chains
    return chains


_BROUGHT, _HOPED, _PRIOR, _DECAY = range(4)
_MATCHED, _SPECULATED = 0, 4
"""Where what is known of drafts from matches begins, and of speculated ones: accepted tokens and
hoped for ones, what of either is taken to have been before, and what they keep of their weight from
step to step."""
_CHAIN_COST, _SPECULATION_COST, _CHAIN_S, _SPECULATION_S = range(8, 12)
"""What chains and speculation have to save in their own time, and that time."""
_RUN, _HOPES, _DEPTH = range(12, 15)
"""Drafted tokens in a row that were right, what was hoped for last, and the longest path of the
last tree of a speculator."""
_HOPELESS, _UNASKED = range(15, 17)
"""Questions to which the answer was nothing, halved with every other answer, and steps from now on
at which nothing is asked."""
_PACE, _TREE_S, _NUMBERS = range(17, 20)
"""``Trust.pace`` and ``Trust.draft_s``."""


@compiled_with(borrows=True)
def _fade(numbers: NDArray[np.float64], hope: int) -> None:
    """A step passed. While nothing is drafted, nothing is learnt, and what was learnt fades."""
    prior, decay = numbers[hope + _PRIOR], numbers[hope + _DECAY]
    numbers[hope + _HOPED] = prior + decay * (numbers[hope + _HOPED] - prior)
    numbers[hope + _BROUGHT] = prior + decay * (numbers[hope + _BROUGHT] - prior)


@compiled_with(borrows=True)
def _likely(numbers: NDArray[np.float64], hope: int) -> float:
    """Accepted tokens for each that was hoped for."""
    likely: float = numbers[hope + _BROUGHT] / numbers[hope + _HOPED]
    return likely


@compiled_with(borrows=True)
def run_of(numbers: NDArray[np.float64], match: int) -> float:
    """Drafted tokens in a row that were right, 0 where they are too few to say anything, or the
    text's end stands earlier for too few tokens."""
    run = numbers[_RUN]
    return run if match >= RUNS[0] and run >= RUNS[0] else 0.0


@compiled_with(borrows=True)
def choose_in(
    numbers: NDArray[np.float64], chains: Chains, match: int, speculates: bool
) -> tuple[int, int]:
    """What to draft where the text's end stands earlier for ``match`` tokens (a ``Draft``), and
    nodes of a chain. ``speculates``: whether there is a speculator."""
    pace, tree_s = numbers[_PACE], numbers[_TREE_S]
    found = min(match, len(FIRST) - 1)
    place, run = found, run_of(numbers, found)
    if run > 0:
        place = len(FIRST)
        while place < len(FIRST) + len(RUNS) - 1 and run >= 2 * RUNS[0]:
            place, run = place + 1, run / 2
    likely = _likely(numbers, _SPECULATED if speculates else _MATCHED)
    saved_s, plain_s = chains.saved_s[place] * likely, chains.plain_s
    tree_saves_s = (saved_s + MORE[found] * min(likely, 1.0) * plain_s) * pace
    tree_saves_s -= _TREE_COSTS * tree_s
    chain_s = speculated_s = 0.0
    if speculates:
        # It drafts what followed the match, too, and knows better whether that is right.
        hoped = SPECULATED[found]
        speculated_s = hoped * likely * plain_s - (hoped + _BESIDE_RIGHT) * chains.node_s
        if place >= len(FIRST):
            speculated_s, hoped = max(speculated_s, saved_s), max(hoped, chains.accepted[place])
        speculated_s = speculated_s * pace - numbers[_SPECULATION_COST] * numbers[_SPECULATION_S]
        beyond = (chains.accepted[place] + MORE[found] - hoped) * min(likely, 1.0)
        tree_saves_s = speculated_s + beyond * plain_s / _BEYOND * pace - _TREE_COSTS * tree_s
    else:
        chain_s = saved_s * pace - numbers[_CHAIN_COST] * numbers[_CHAIN_S]
    if max(chain_s, tree_saves_s, speculated_s) <= 0:
        _fade(numbers, _MATCHED)
        _fade(numbers, _SPECULATED)
        return _NOTHING, 0
    if speculated_s > max(chain_s, tree_saves_s):
        numbers[_HOPES] = SPECULATED[found]
        return _SPECULATION, 0
    if tree_saves_s > chain_s:
        numbers[_HOPES] = chains.accepted[place] + MORE[found]
        return _TREE, 0
    numbers[_HOPES] = chains.accepted[place]
    return _CHAIN, chains.nodes[place]


@compiled_with()
def choose(odds: Any, match: int, speculates: bool) -> tuple[int, int]:
    """``choose_in``, by one argument for all that does not change."""
    kind, nodes = choose_in(odds.numbers, odds.chains, match, speculates)
    return kind, nodes


@compiled_with(borrows=True)
def worth_of(numbers: NDArray[np.float64], chains: Chains) -> float:
    """Seconds that a speculated token saves where it is right, less while fewer are right than were
    hoped for."""
    worth_s = chains.plain_s * _likely(numbers, _SPECULATED) / _FASTER
    return max(worth_s, (chains.slopes[0] + NODE_S) / _MOST_CHANCE)


@compiled_with(borrows=True)
def note_speculated(numbers: NDArray[np.float64], hoped: float, depth: int) -> None:
    """Of a speculator's tree so many tokens are hoped for, and so many are on its longest path.

    Of none there is no more to be hoped, but it was asked for what it usually brings.
    """
    numbers[_DEPTH] = depth
    if depth > 0:
        numbers[_HOPES] = hoped


@compiled_with(borrows=True)
def _learn(numbers: NDArray[np.float64], hope: int, nodes: int, accepted: int) -> None:
    """Of so many nodes so many tokens were right."""
    numbers[_RUN] = numbers[_RUN] + accepted if accepted == nodes else 0
    _fade(numbers, hope)
    hoped = numbers[_HOPES]
    # One long run that breaks off at once says no more than a few tokens that were wrong.
    share = 1.0 if hope == _MATCHED else min(1.0, _MOST_LEARNT / max(hoped, 1e-9))
    numbers[hope + _HOPED] += share * hoped
    numbers[hope + _BROUGHT] += share * min(accepted, _MOST_LIKELY * hoped)


@compiled_with(borrows=True)
def learn_speculated(numbers: NDArray[np.float64], accepted: int) -> None:
    """Of a speculator's last tree so many tokens were right."""
    _learn(numbers, _SPECULATED, int(numbers[_DEPTH]), accepted)


@compiled_with(borrows=True)
def passes_in(numbers: NDArray[np.float64]) -> bool:
    """Whether nothing is asked at this step, as at most while there is nothing to hope for."""
    if numbers[_UNASKED] < 1:
        return False
    numbers[_UNASKED] -= 1
    return True


@compiled_with(borrows=True)
def note_asked(numbers: NDArray[np.float64], kind: int, took_s: float) -> None:
    """The answer was ``kind``; to ask took so long, and to draft where that is made at once."""
    if kind == _NOTHING:
        numbers[_HOPELESS] += 1
        # Asking takes a tenth of a small forward: less often while there is nothing to hope.
        numbers[_UNASKED] = min(numbers[_HOPELESS] - 1, _MOST_UNASKED)
        return
    numbers[_HOPELESS] //= 2
    if kind != _TREE:
        # One slow draft, after which none is made, would never be corrected.
        place = _CHAIN_S if kind == _CHAIN else _SPECULATION_S
        numbers[place] += _NEW_SHARE * (min(took_s, 2 * numbers[place]) - numbers[place])


class Choice:
    """Chooses for one request, by what drafts brought so far."""

    def __init__(self, trust: Trust, *, looks_at_logits: bool = False) -> None:
        """``trust`` knows the machine's pace and what trees take; ``looks_at_logits``: whether
        tokens are drawn of those of all rows, where each row costs more."""
        self._trust = trust
        self._numbers = numbers = np.zeros(_NUMBERS)
        # A speculator is asked nearly always, so it is believed less when it was wrong.
        for hope, prior, decay in ((_MATCHED, 6.0, 0.9), (_SPECULATED, 2.0, 0.95)):
            numbers[hope : hope + 4] = prior, prior, prior, decay
        numbers[_CHAIN_COST] = _LOGIT_COSTS if looks_at_logits else _CHAIN_COSTS
        numbers[_SPECULATION_COST] = _LOGIT_COSTS if looks_at_logits else _SPECULATION_COSTS
        numbers[_CHAIN_S], numbers[_SPECULATION_S] = _USUAL_CHAIN_S, _USUAL_SPECULATION_S
        self._odds: Odds | None = None
        self._odds_for: Chains | None = None
        self.kind = Draft.NOTHING
        """What was drafted last."""
        self.took_s = 0.0
        """What the last question took, and what was drafted. A tree is timed by who makes it."""

    @property
    def will_ask(self) -> bool:
        """Whether the next ``draft`` looks at anything."""
        return not self._numbers[_UNASKED]

    def passes(self) -> bool:
        """See ``passes_in``."""
        if self.will_ask:
            return False
        self.kind, self.took_s = Draft.NOTHING, 0.0
        # Behind a forward a call of compiled code would take ten times as long.
        self._numbers[_UNASKED] -= 1
        return True

    def draft(
        self, matcher: Matcher, chains: Chains, room: int, speculator: Speculating | None = None
    ) -> DraftTree | None:
        """What is worth its time, of ``room`` nodes at most; None where that is a tree."""
        if self.passes():
            return DraftTree.empty()
        started = time.perf_counter()
        odds, tree = self.odds(chains), DraftTree.empty()
        if speculator is not None:
            kind, nodes, tree = speculator.ask(odds, min(MOST_NODES, room))
        else:
            kind, nodes = choose(odds, matcher.match(), False)
        if kind == _CHAIN:
            tree = matcher.chain(min(nodes, room))
        self.kind = _KINDS[kind]
        self.took_s = took_s = time.perf_counter() - started
        note_asked(self._numbers, kind, took_s)
        if kind == _TREE:
            return None
        if kind == _NOTHING:
            return tree
        if not len(tree):
            self.learn(0, 0)
        return tree

    def odds(self, chains: Chains) -> Odds:
        """What ``choose`` goes by at a step."""
        self._numbers[_PACE], self._numbers[_TREE_S] = self._trust.pace, self._trust.draft_s
        if self._odds is None or self._odds_for is not chains:
            self._odds, self._odds_for = odds_of(self._numbers, chains), chains
        return self._odds

    def learn(self, nodes: int, accepted: int) -> None:
        """Of the last draft, of so many nodes, so many tokens were right."""
        if self.kind == Draft.SPECULATION:
            learn_speculated(self._numbers, accepted)
        else:
            _learn(self._numbers, _MATCHED, nodes, accepted)


_KINDS = tuple(Draft)
"""By number: the class takes as long as choosing."""
