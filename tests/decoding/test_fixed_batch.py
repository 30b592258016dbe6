"""The rows of a request's forwards follow what the drafts of earlier requests brought."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from small_model import SMALL_MODEL

from accel.decoding.drafting import Drafting
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import DraftRequest, VerifyCosts
from accel.execution.forwards import alone
from accel.execution.statistics import Statistics
from accel.models.base import BatchKind, Capability
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.profile_store import ProfileStore
from accel.planning.cost_table import CostTable
from accel.planning.draft_log import DraftLog
from accel.planning.fixed_batch_planner import FixedBatchPlanner
from accel.planning.planner import DraftPlan
from accel.planning.tokens_per_forward import HALF_LIFE, TokensPerForward
from accel.text.tokenizer import Tokenizer
from tests.benchmarks.planners import forget, frozen

WIDTHS = (1, 4, 8, 16, 32)
DEAR = [10.0, 20.0, 26.0, 30.0, 34.0, 75.0]
"""Milliseconds by rows with which typical completions are as fast without drafts."""


@pytest.fixture(autouse=True)
def kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def costs_of(milliseconds: list[float]) -> ForwardCosts:
    return ForwardCosts([256], [1, 4, 8, 12, 16, 32], np.array([milliseconds]) * 1e-3)


def draft(tokens: TokenArray, right: int) -> DraftTree:
    """A branch whose first ``right`` tokens are ``tokens``, behind a wrong one here and there."""
    guess = np.concatenate([tokens[:right], np.full(31 - right, -1)])[:30].astype(np.int32)
    if tokens[0] % 5:
        return DraftTree.chain(guess, Source.PROMPT, 0.9)
    tree = DraftTree.chain(np.concatenate([[-2], guess]).astype(np.int32), Source.PROMPT, 0.9)
    tree.parents = np.array([-1, -1, *range(1, len(guess))], np.int32)
    return tree


def walk(text: TokenArray, right: list[int], rows: int) -> tuple[int, DraftLog]:
    """Forwards of so many rows over a text, where a draft at each place knows so many tokens."""
    taken: dict[int, float] = {}
    log = DraftLog(WIDTHS, lambda _tokens, forwards: taken.update(forwards))
    at = forwards = 0
    while at < len(text):
        tree = draft(text[at:], right[at])
        log.note(at, tree)
        forwards += 1
        at += 1 + len(tree.prefix(rows - 1).accepted_path(text[at:]))
    log.end(text)
    return forwards, log


def predictable(seed: int, count: int = 400) -> tuple[TokenArray, list[int]]:
    """A text, and how many tokens are known at each place: long and short runs, none between."""
    draw = random.Random(seed)
    right: list[int] = []
    while len(right) < count:
        run = draw.choice([0, 1, 2, 3, 6, 12, 40])
        right += [min(left, 29) for left in range(run, -1, -1)]
    return np.arange(count, dtype=np.int32), right[:count]


def test_the_forwards_that_were_are_counted_as_they_were() -> None:
    seed = random.randrange(1 << 30)
    text, right = predictable(seed)
    for rows in WIDTHS:
        forwards, log = walk(text, right, rows)
        assert log.forwards(text)[rows] == forwards, f"seed {seed}, {rows} rows"


def test_other_widths_are_counted_nearly_as_they_would_be() -> None:
    text, right = predictable(11, 1000)
    true = {rows: walk(text, right, rows)[0] for rows in WIDTHS}
    assert true[1] == len(text)
    assert true[1] > 1.5 * true[4] > 1.5 * true[16]
    for rows in WIDTHS:
        found = walk(text, right, rows)[1].forwards(text)
        assert found == pytest.approx(true, rel=0.1)


def test_a_text_that_ends_before_anything_was_drafted_teaches_nothing() -> None:
    log = DraftLog(WIDTHS, lambda *_: pytest.fail("nothing was drafted"))
    log.end(np.arange(3, dtype=np.int32))
    log.note(3, DraftTree.empty())
    log.end(np.arange(3, dtype=np.int32))


def test_what_is_learnt_outweighs_what_is_typical_and_is_forgotten() -> None:
    tokens = TokensPerForward({1: 1.0, 4: 2.0})
    assert tokens[4] == pytest.approx(2.0)
    for _ in range(20):
        tokens.learn(100, {1: 100, 4: 25})
    assert 3.7 < tokens[4] < 4
    for _ in range(3 * HALF_LIFE // 100):
        tokens.learn(100, {1: 100, 4: 100})
    assert tokens[4] < 1.2
    assert tokens[1] == pytest.approx(1.0)


def learn(planner: FixedBatchPlanner, right: int, texts: int = 4, *, is_edit: bool = False) -> None:
    """Texts of 120 tokens of which each draft knows so many."""
    text = np.arange(120, dtype=np.int32)
    for _ in range(texts):
        plan = planner.begin(is_edit=is_edit)
        if plan.log is None:
            continue
        at = 0
        while at < len(text):
            tree = draft(text[at:], min(right, len(text) - at))
            plan.log.note(at, tree)
            at += 1 + len(tree.prefix(plan.costs.batch_size - 1).accepted_path(text[at:]))
        plan.log.end(text)


def test_drafts_that_are_right_widen_forwards_and_wrong_ones_narrow_them() -> None:
    planner = FixedBatchPlanner(costs_of(DEAR))
    assert planner.chosen["completions"] == 1
    edits = planner.chosen["edits"]
    # Drafts are looked at, though none is verified.
    learn(planner, 14)
    assert planner.chosen["completions"] == 16
    assert planner.begin(is_edit=False).costs.batch_size == 16
    assert planner.chosen["edits"] == edits
    learn(planner, 0, texts=40)
    assert planner.chosen["completions"] == 1
    learn(planner, 0, is_edit=True)
    assert planner.chosen["edits"] == 1


def test_a_request_keeps_its_width_and_frozen_ones_have_one() -> None:
    planner = FixedBatchPlanner(costs_of(DEAR))
    costs = planner.begin(is_edit=False).costs
    with frozen(planner):
        learn(planner, 14)
        assert planner.begin(is_edit=False).costs is costs
    assert planner.chosen["completions"] == 16
    assert costs.batch_size == 1


def test_drafts_that_nobody_verifies_are_seldom_made() -> None:
    planner = FixedBatchPlanner(costs_of(DEAR))
    assert all(planner.begin(is_edit=False).log for _ in range(32))
    learn(planner, 0, texts=40)
    assert sum(planner.begin(is_edit=False).log is not None for _ in range(32)) == 4
    assert all(planner.begin(is_edit=True).log for _ in range(32))


def test_without_a_choice_nothing_is_looked_at() -> None:
    planner = FixedBatchPlanner(ForwardCosts([16], [1], np.array([[1e-3]])))
    plan = planner.begin(is_edit=True)
    assert plan.costs.batch_size == 1
    assert plan.log is None


def test_what_was_learnt_is_there_after_a_new_start() -> None:
    planner = FixedBatchPlanner(costs_of(DEAR), ProfileStore("m"))
    learn(planner, 14, texts=8)
    again = FixedBatchPlanner(costs_of(DEAR), ProfileStore("m"))
    assert again.chosen == planner.chosen
    assert again.chosen["completions"] == 16
    # A bench begins as everybody does, and leaves what is kept alone.
    forget(again)
    assert again.chosen["completions"] == 1
    learn(again, 0, texts=16)
    assert FixedBatchPlanner(costs_of(DEAR), ProfileStore("m")).chosen == planner.chosen


@pytest.mark.parametrize(
    "kept",
    [
        "text",
        {"completions": [1]},
        {"completions": {"tokens": "x", "learnt": 0, "forwards": {}}},
        {"completions": {"tokens": 9.0, "learnt": 0, "forwards": {"1": 9.0}}},
        {"completions": {"tokens": float("nan"), "learnt": 0, "forwards": {"1": 9.0}}},
    ],
)
def test_what_is_kept_in_another_form_is_left(kept: object) -> None:
    store = ProfileStore("m")
    store.put("tokens per forward", json.loads(json.dumps(kept)))
    assert (
        FixedBatchPlanner(costs_of(DEAR), store).chosen == FixedBatchPlanner(costs_of(DEAR)).chosen
    )


class Foreseeing:
    """A drafter that plans, and knows all of a text."""

    name = "redraft"
    step_s = saved_s = 0.0

    def begin(self, request: DraftRequest) -> None:
        self._next = 0

    def draft(self, max_nodes: int) -> DraftTree:
        tokens = np.arange(self._next, self._next + max_nodes, dtype=np.int32)
        return DraftTree.chain(tokens, Source.PROMPT, 0.99)

    def draft_within(self, max_nodes: int, prices: VerifyCosts) -> DraftTree:
        return self.draft(max_nodes)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        self._next += len(tokens)


@pytest.mark.parametrize("width", [1, 8])
def test_more_is_drafted_for_the_log_than_is_verified(width: int) -> None:
    found: dict[int, float] = {}
    log = DraftLog(WIDTHS, lambda _tokens, forwards: found.update(forwards))
    plan = DraftPlan(CostTable(costs_of(DEAR), width, widths=(width,)), log)
    drafting = Drafting(
        *(Foreseeing(), plan, Capability(BatchKind.TREE, 8)),
        *(Tokenizer.from_folder(SMALL_MODEL), Statistics()),
        plans=True,
    )
    alone(drafting.begin(DraftRequest(np.full(1, 99, np.int32))))
    text = np.arange(96, dtype=np.int32)
    at = 0
    while at < len(text):
        tree = alone(drafting.tree(1, at + 1, 100, b""))
        assert len(tree) == width - 1
        tokens = text[at : at + width]
        path = list(range(min(width - 1, len(tokens))))
        drafting.learn(tree, path, tokens, 1, at + width)
        at += len(tokens)
    drafting.end(text)
    assert found == {rows: pytest.approx(96 / rows, rel=0.05) for rows in WIDTHS}
