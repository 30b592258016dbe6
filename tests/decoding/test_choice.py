"""Whether a step drafts nothing, a chain or a tree, and how long chains are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accel.choice import (
    CHANCES,
    FIRST,
    MORE,
    MOST_NODES,
    NEXT,
    RUNS,
    SPECULATED,
    Choice,
    Draft,
    Odds,
    choose,
    note_speculated,
    run_of,
    worth_of,
)
from accel.draft_tree import DraftTree, Source
from accel.planner import BESIDE_S, Planner
from accel.profile import Costs
from accel.trust import Trust

FAST = Planner(Costs([256], [1, 4, 8, 16, 64], np.array([[0.17, 0.2, 0.26, 0.46, 1.4]]) * 1e-3))
FLAT = Planner(Costs([256], [1, 4, 8, 16, 64], np.array([[0.38, 0.42, 0.48, 0.6, 1.37]]) * 1e-3))
"""As by tile registers: more rows take hardly longer."""
SLOW = Planner(Costs([256], [1, 4, 8, 16, 64], np.array([[20.0, 20.1, 20.3, 20.8, 23.0]]) * 1e-3))


class Matches:
    """A drafter whose matches are given."""

    def __init__(self, *matches: int) -> None:
        self._matches = list(matches)
        self.asked: list[int] = []

    def match(self) -> int:
        self.asked.append(self._matches[0])
        return self._matches.pop(0) if len(self._matches) > 1 else self._matches[0]

    def chain(self, nodes: int) -> DraftTree:
        return DraftTree.chain(np.arange(nodes, dtype=np.int32), Source.PROMPT)


def chosen(
    choice: Choice, match: int, planner: Planner = FAST, *, speculates: bool = False
) -> tuple[Draft, int]:
    """What is drafted behind a match, and nodes of a chain."""
    kind, nodes = choose(choice.odds(planner.chains(1, 300)), match, speculates)
    return Draft(kind), nodes


def kinds(planner: Planner, choice: Choice | None = None) -> list[Draft]:
    return [chosen(choice or Choice(Trust()), match, planner)[0] for match in range(20)]


def test_a_fast_forward_gets_chains_and_a_slow_one_trees() -> None:
    assert kinds(FAST) == [Draft.NOTHING, *[Draft.CHAIN] * 19]
    assert kinds(SLOW) == [Draft.TREE] * 20


def test_where_logits_are_looked_at_a_chain_has_to_promise_more() -> None:
    drawn = [
        match
        for match in range(20)
        if chosen(Choice(Trust(), looks_at_logits=True), match)[0] == Draft.CHAIN
    ]
    assert drawn == list(range(drawn[0], 20))
    assert 1 < drawn[0] < 6


@pytest.mark.parametrize("pending", [1, 3])
def test_chains_are_those_that_save_most(pending: int) -> None:
    random = np.random.default_rng(5)
    rows = [1, 2, 4, 8, 16, 32, 80]
    costs = Costs([256], rows, np.sort(random.random((1, len(rows)))) * 1e-3)
    planner = Planner(costs)
    seconds = planner.by_rows(300)[pending:]
    plain_s = seconds[0] + BESIDE_S
    chains = planner.chains(pending, 300)
    for chances, best_nodes, accepted, best_s in zip(
        CHANCES, chains.nodes, chains.accepted, chains.saved_s, strict=True
    ):
        saved = [
            chances[:nodes].sum() * plain_s - (seconds[nodes] - seconds[0])
            for nodes in range(1, MOST_NODES + 1)
        ]
        assert best_nodes == 1 + int(np.argmax(saved))
        assert best_s == pytest.approx(max(saved))
        assert accepted == pytest.approx(chances[:best_nodes].sum())


def test_longer_matches_and_runs_promise_more() -> None:
    assert list(FIRST) == sorted(FIRST)
    assert list(NEXT) == sorted(NEXT)
    assert all(more > 0 for more in MORE)
    assert (np.diff(CHANCES[1 : len(FIRST)].sum(1)) > 0).all()
    assert (np.diff(CHANCES[len(FIRST) :].sum(1)) > 0).all()
    assert (np.diff(CHANCES, axis=1) <= 0).all()


def test_a_run_that_goes_on_gets_longer_chains() -> None:
    choice, lengths = Choice(Trust()), []
    for _ in range(6):
        kind, nodes = chosen(choice, 16)
        assert kind == Draft.CHAIN
        lengths.append(nodes)
        choice.learn(nodes, nodes)
    assert lengths == sorted(lengths)
    assert lengths[-1] == MOST_NODES > 4 * lengths[0]
    choice.learn(lengths[-1], 3)
    assert chosen(choice, 16)[1] == lengths[0], "it broke off"
    choice.learn(RUNS[0] * 4, RUNS[0] * 4)
    assert chosen(choice, 1)[1] < lengths[0], "behind a short match a run says nothing"


def test_what_drafts_bring_is_learnt_in_the_request() -> None:
    poor = Choice(Trust())
    for _ in range(12):
        chosen(poor, 3)
        poor.learn(3, 0)
    assert chosen(poor, 1)[0] == Draft.NOTHING
    for _ in range(60):
        chosen(poor, 0)
    assert chosen(poor, 1)[0] == Draft.CHAIN, "what was learnt fades while nothing is drafted"


def test_questions_become_rare_where_nothing_is_hoped_for() -> None:
    choice, chains = Choice(Trust()), FAST.chains(1, 300)
    nothing = Matches(0)
    for _ in range(100):
        tree = choice.draft(nothing, chains, 8)
        assert tree is not None
        assert not len(tree)
    assert 10 < len(nothing.asked) < 30
    some = Matches(9)
    while choice.kind != Draft.CHAIN:
        choice.draft(some, chains, 8)
    assert len(some.asked) == 1


def test_a_chain_keeps_to_the_room_and_is_timed() -> None:
    choice = Choice(Trust())
    tree = choice.draft(Matches(9), FAST.chains(1, 300), 2)
    assert tree is not None
    assert len(tree) == 2
    assert choice.kind == Draft.CHAIN
    assert 0 < choice.took_s < 1
    assert choice.draft(Matches(9), SLOW.chains(1, 300), 2) is None
    assert choice.kind == Draft.TREE
    assert 0 < choice.took_s < 1, "asking is paid for before a tree, too"


class Guesses:
    """A speculator whose trees are chains of which half is hoped for, and what it was asked for."""

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self.asked: list[tuple[int, float]] = []

    def note_state(self, last: NDArray[Any], middle: NDArray[Any]) -> None: ...

    def ask(self, odds: Odds, nodes: int) -> tuple[int, int, DraftTree]:
        kind, chain = choose(odds, 0, True)
        if kind != Draft.SPECULATION:
            return kind, chain, DraftTree.empty()
        return kind, chain, self.speculate(odds, nodes)

    def speculate(self, odds: Odds, nodes: int) -> DraftTree:
        self.asked.append((nodes, worth_of(odds.numbers, odds.chains)))
        count = min(nodes, self._most, 5)
        note_speculated(odds.numbers, count / 2, count)
        return DraftTree.chain(np.arange(count, dtype=np.int32), Source.SPECULATED)


def test_a_speculator_drafts_behind_all_matches_where_forwards_are_fast() -> None:
    for match in range(20):
        assert chosen(Choice(Trust()), match, speculates=True)[0] == Draft.SPECULATION
        assert chosen(Choice(Trust()), match)[0] != Draft.SPECULATION
    assert list(SPECULATED) == sorted(SPECULATED)


def test_a_tree_beside_a_speculator_has_to_bring_more_than_that_does() -> None:
    """A run that goes on is in its trees, too; a slow forward gets what is still beyond them."""
    for planner, expected in ((FLAT, Draft.SPECULATION), (SLOW, Draft.TREE)):
        choice = Choice(Trust())
        for match in (6, 16):
            assert chosen(choice, match, planner, speculates=True)[0] == expected, match
        for _ in range(6):
            choice.learn(8, 8)
        assert run_of(choice.odds(planner.chains(1, 300)).numbers, 16) == 48
        assert chosen(choice, 16, planner, speculates=True)[0] == expected, "a run"
    assert chosen(Choice(Trust()), 0, SLOW, speculates=True)[0] == Draft.SPECULATION


def test_long_runs_that_came_true_promise_nothing_for_short_matches() -> None:
    choice = Choice(Trust())
    for _ in range(3):
        kind, nodes = chosen(choice, 16)
        assert kind == Draft.CHAIN
        choice.learn(nodes, nodes)
    for match in (1, 2):
        assert chosen(choice, match, speculates=True)[0] == Draft.SPECULATION


def test_a_run_goes_on_while_the_longest_path_is_right() -> None:
    choice, chains = Choice(Trust()), FAST.chains(1, 300)
    odds, right = choice.odds(chains), 0
    choice.draft(Matches(0), chains, 64, Guesses())
    for nodes, depth, accepted in ((9, 4, 4), (12, 7, 7), (3, 2, 1)):
        note_speculated(odds.numbers, 2.0, depth)
        choice.learn(nodes, accepted)
        right = right + accepted if accepted == depth else 0
        assert run_of(odds.numbers, RUNS[0]) == (right if right >= RUNS[0] else 0)


def test_what_is_speculated_keeps_to_the_room_and_is_timed() -> None:
    choice, guesses, chains = Choice(Trust()), Guesses(), FAST.chains(1, 300)
    tree = choice.draft(Matches(0), chains, 2, guesses)
    assert tree is not None
    assert len(tree) == 2
    assert choice.kind == Draft.SPECULATION
    assert choice.took_s > 0
    choice.draft(Matches(0), chains, 100, guesses)
    assert [nodes for nodes, _ in guesses.asked] == [2, MOST_NODES]
    assert 0.2 * chains.plain_s < guesses.asked[0][1] < chains.plain_s


def test_a_speculator_that_is_wrong_is_asked_for_less_and_then_hardly_ever() -> None:
    choice, guesses, chains = Choice(Trust()), Guesses(), FAST.chains(1, 300)
    for _ in range(200):
        tree = choice.draft(Matches(0), chains, 8, guesses)
        assert tree is not None
        if len(tree):
            choice.learn(len(tree), 0)
    worth = [asked for _, asked in guesses.asked]
    assert worth[0] > worth[1] > worth[2]
    assert max(worth[2:]) < worth[0] / 1.5
    assert min(worth) >= 2 * chains.slopes[0], "the first node is drafted from even odds on"
    assert len(worth) < 60


def test_a_speculator_that_says_nothing_counts_as_wrong() -> None:
    choice, silent, chains = Choice(Trust()), Guesses(0), FAST.chains(1, 300)
    for _ in range(200):
        assert choice.draft(Matches(0), chains, 8, silent) is not None
    assert len(silent.asked) < 60


def test_slopes_are_the_least_that_more_nodes_cost():
    random = np.random.default_rng(0)
    rows = [1, 2, 4, 8, 16, 32]
    costs = Costs([256], rows, np.sort(random.random((1, len(rows)))))
    prices = Planner(costs, limit=32).prices(1, 100, 1.0, 0.1)
    seconds = prices.seconds
    for count in range(len(seconds) - 1):
        rises = [(seconds[more] - seconds[count]) / (more - count) for more in range(count + 1, 32)]
        assert prices.slopes[count] == pytest.approx(max(min(rises), 0) + 1e-5)
