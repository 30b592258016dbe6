"""The planner picks the tree with the most expected tokens per second."""

from __future__ import annotations

import numpy as np
import pytest

from accel.draft_tree import DraftTree, Source
from accel.models.costs.first_costs import ROWS
from accel.models.costs.forward_costs import ForwardCosts
from accel.planning.acceptance_rate import AcceptanceRate
from accel.planning.cost_table import Company, CostTable
from accel.planning.planner import AdaptivePlanner


def tree_of(probabilities: list[float]) -> DraftTree:
    count = len(probabilities)
    tree = DraftTree.chain(np.arange(count, dtype=np.int32), Source.PROMPT)
    tree.probabilities = np.array(probabilities, np.float32)
    tree.parents = np.full(count, -1, np.int32)
    return tree


def linear(fixed: float, marginal_cost: float) -> ForwardCosts:
    rows = [1, 2, 4, 8, 16, 32, 64, 128]
    return ForwardCosts([256], rows, np.array([[fixed + marginal_cost * count for count in rows]]))


def test_the_choice_equals_a_search_over_all_sizes() -> None:
    random = np.random.default_rng(8)
    for _ in range(200):
        costs = linear(float(random.uniform(0.1, 5)), float(random.uniform(0.01, 1)))
        planner = CostTable(costs)
        pending = int(random.integers(1, 6))
        chances = np.sort(random.uniform(0, 0.6, random.integers(0, 60)))[::-1]
        acceptance, overhead = float(random.uniform(0.2, 1.2)), float(random.uniform(0, 1))
        chosen, _ = planner.fit(tree_of(chances.tolist()), pending, 300, acceptance, overhead)
        rates = [
            (1 + acceptance * float(chances[:size].sum()))
            / (planner.seconds(pending + size, 300) + overhead)
            for size in range(len(chances) + 1)
        ]
        assert rates[len(chosen)] == pytest.approx(max(rates))


@pytest.mark.parametrize("chunk", [4, 8])
@pytest.mark.parametrize("rows", [ROWS, (1, 4, 5, 8, 9, 12, 13, 16, 17, 64)])
@pytest.mark.parametrize("pending", [1, 2])
def test_drafts_fill_the_chunks_that_kernels_compute_at_once(
    chunk: int, rows: tuple[int, ...], pending: int
) -> None:
    """Eight rows are the pending token and seven nodes."""
    seconds = [2.0 + 8.0 * -(-count // chunk) for count in rows]
    planner = CostTable(ForwardCosts([256], list(rows), np.array([seconds])))
    sizes = set()
    for chance in np.linspace(0.02, 0.98, 49):
        # A chain whose nodes are right with the same chance as long as all before were.
        chosen = len(
            planner.fit(tree_of([chance**n for n in range(1, 16)]), pending, 300, 1.0, 0)[0]
        )
        fills = [size * chunk - pending for size in range(1, 5)]
        assert chosen in (0, 15, *fills), f"{chosen} nodes at a chance of {chance:.2f}"
        sizes.add(chosen)
    assert chunk - pending in sizes


def test_unlikely_drafts_are_not_verified() -> None:
    assert len(CostTable(linear(0.0, 1.0)).fit(tree_of([0.1] * 8), 1, 0, 1.0, 0.0)[0]) == 0
    assert len(CostTable(linear(9.0, 0.0)).fit(tree_of([0.1] * 8), 1, 0, 1.0, 0.0)[0]) == 8


def test_rows_grow_to_a_measured_count_or_to_a_faster_one() -> None:
    """One row at 9 ms, two to eight at 2 ms: one is computed as two, five as eight."""
    costs = ForwardCosts([256], [1, 2, 8, 16], np.array([[9.0, 2.0, 2.0, 7.0]]))
    planner = CostTable(costs, widths=(1, 2, 8, 16))
    targets = [rows + planner.padding(rows, 0) for rows in range(1, 18)]
    assert targets == [2, 2, *[8] * 6, *[16] * 8, 17]
    assert [planner.seconds(rows, 0) for rows in (1, 2, 5, 8, 9)] == [2.0, 2.0, 2.0, 2.0, 7.0]
    alone = CostTable(costs)
    assert [alone.padding(rows, 0) for rows in (1, 5)] == [0, 0]
    assert alone.seconds(1, 0) == 9.0
    assert planner.padding(5000, 0) == 0


def test_prompts_cost_as_much_for_a_row_as_the_widest_forward_that_is_computed() -> None:
    costs = ForwardCosts([256], [1, 8], np.array([[2.0, 4.0]]))
    planner = CostTable(costs, limit=8, widths=(8,))
    assert planner.prefill_seconds(4, 0) == 4.0
    assert planner.prefill_seconds(64, 0) == 32.0


def test_a_share_of_a_forward_is_the_first_of_the_costs_that_trees_are_sized_by() -> None:
    """Random costs and companies, also of more rows than were measured."""
    seed = int(np.random.default_rng().integers(2**31))
    random = np.random.default_rng(seed)
    for _ in range(200):
        costs = ForwardCosts([256], list(ROWS), np.cumsum(random.random((1, len(ROWS))), axis=1))
        planner = CostTable(costs, limit=40)
        requests, pending = int(random.integers(1, 20)), int(random.integers(1, 5))
        company = Company(requests, int(requests * random.integers(1, 8)))
        sized = planner.verify_costs(pending, 300, 1.0, 0.0, company)
        assert planner.share_seconds(pending, 300, company) == sized.seconds[0], f"seed {seed}"


def test_costs_are_linear_between_and_beyond_what_was_measured() -> None:
    costs = ForwardCosts([100, 300], [1, 4, 8], np.array([[1.0, 4.0, 8.0], [3.0, 6.0, 10.0]]))
    assert costs.by_rows(100, 8).tolist()[1:] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert costs.by_rows(200, 12).tolist()[8:] == [9, 10, 11, 12, 13]
    assert costs.by_rows(5, 8)[1] == 1.0
    assert costs.by_rows(500, 8)[1] == 5.0


def test_trust_falls_with_refused_drafts_and_comes_back() -> None:
    acceptance = AcceptanceRate()
    assert acceptance.scale == 1.0
    for _ in range(50):
        acceptance.learn(4.0, 0, 1e-3)
    low = acceptance.scale
    assert low < 0.1
    for _ in range(200):
        acceptance.learn(4.0, 4, 1e-3)
    assert acceptance.scale > 0.8


def test_what_was_learnt_fades_while_nothing_is_verified() -> None:
    acceptance = AcceptanceRate()
    for _ in range(50):
        acceptance.learn(4.0, 0, 1e-3)
    for _ in range(300):
        acceptance.note_draft(1e-4, is_used=False, gain_s=0.0)
    assert acceptance.scale > 0.9


def test_wrong_drafts_cost_little() -> None:
    """A drafter that is always wrong and always sure, over 400 tokens at the measured costs of the
    embedded model in bf16: less than 5 % above plain decoding."""
    rows = [1, 2, 4, 8, 16, 32, 64]
    costs = ForwardCosts([512], rows, np.array([[1.39, 1.6, 1.91, 2.29, 3.08, 4.06, 6.7]]))
    planner, acceptance = CostTable(costs), AcceptanceRate()
    spent = 0.0
    for _ in range(400):
        plain = planner.seconds(1, 512)
        if acceptance.wants_draft(plain):
            tree, gain_s = planner.fit(tree_of([0.9] * 16), 1, 512, acceptance.scale, 0.1)
            acceptance.note_draft(0.05, is_used=len(tree) > 0, gain_s=gain_s)
            spent += 0.05
        else:
            tree = DraftTree.empty()
        spent += planner.seconds(1 + len(tree), 512)
        if len(tree):
            acceptance.learn(float(tree.probabilities.sum()), 0, plain)
    assert spent < 1.05 * 400 * planner.seconds(1, 512)


def test_costly_drafts_pause_when_they_are_refused_again_and_again() -> None:
    acceptance = AcceptanceRate()
    asked = 0
    for _ in range(100):
        if acceptance.wants_draft(plain_s=1e-3):
            asked += 1
            acceptance.note_draft(1e-3, is_used=False, gain_s=0.0)
    assert 5 < asked < 20
    for _ in range(20):
        acceptance.note_draft(1e-3, is_used=True, gain_s=4e-3)
    assert all(acceptance.wants_draft(1e-3) for _ in range(5))
    cheap = AcceptanceRate()
    for _ in range(20):
        assert cheap.wants_draft(1.0)
        cheap.note_draft(1e-6, is_used=False, gain_s=0.0)


def test_drafts_that_are_refused_against_expectation_become_rare() -> None:
    """Each is expected to save four times what it costs, and never saves anything."""
    acceptance, drafts = AcceptanceRate(), 0
    for _ in range(300):
        if acceptance.wants_draft(1e-3):
            drafts += 1
            acceptance.note_draft(1e-4, is_used=True, gain_s=acceptance.scale * 4e-4)
            acceptance.learn(0.4, 0, 1e-3)
    assert drafts < 40
    other = AcceptanceRate()
    for _ in range(100):
        assert other.wants_draft(1e-3)
        other.note_draft(1e-4, is_used=True, gain_s=4e-4)
        other.learn(0.4, 0 if other.scale > 1 else 1, 1e-3)


def test_drafts_that_save_less_than_they_cost_become_rare() -> None:
    """Drafting takes 0.1 ms and saves half of it: one step in 33 drafts. Once drafts save time,
    every step does."""
    acceptance, drafts = AcceptanceRate(), []
    for _ in range(400):
        drafts.append(acceptance.wants_draft(1e-3))
        if drafts[-1]:
            acceptance.note_draft(1e-4, is_used=True, gain_s=5e-5)
    assert sum(drafts[:64]) <= 8
    assert sum(drafts[64:]) <= 336 // 33 + 1
    for _ in range(40):
        if acceptance.wants_draft(1e-3):
            acceptance.note_draft(1e-4, is_used=True, gain_s=2e-3)
    assert all(acceptance.wants_draft(1e-3) for _ in range(20))
    acceptance.note_draft(1e-4, is_used=False, gain_s=0.0)
    assert acceptance.wants_draft(1e-3), "one draft in vain is no reason to stop"


STEPS = [1.0, 1.0, 1.0, 1.0, 2.5, 2.5, 2.5, 2.5, 2.5]
CURVES = {
    "flat": [1.0 + 0.001 * rows for rows in range(9)],
    "steep": [1.0 * max(rows, 1) for rows in range(9)],
    "a staircase": [STEPS[max(rows - 1, 0)] for rows in range(9)],
}


@pytest.mark.parametrize("name", CURVES)
def test_any_form_of_curve_is_planned_on(name: str) -> None:
    """Flat: all nodes. Steep: none of low chance. A staircase: up to the edge of a step."""
    costs = ForwardCosts([256], list(range(1, 9)), np.array([CURVES[name][1:]]))
    tree = tree_of([0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.05])
    chosen = len(CostTable(costs).fit(tree, 1, 0, 1.0, 0.0)[0])
    assert chosen == {"flat": 7, "steep": 0, "a staircase": 3}[name]


def test_a_tree_keeps_to_so_many_leaves() -> None:
    tree = tree_of([0.5, 0.4, 0.3, 0.2])
    assert len(tree.with_leaves(2)) == 2
    assert tree.with_leaves(4) is tree
    chain = DraftTree.chain(np.arange(5, dtype=np.int32), Source.PROMPT)
    assert chain.with_leaves(1) is chain


def test_requests_of_an_adaptive_planner_share_costs_and_no_acceptance() -> None:
    costs = ForwardCosts([256], [1, 2, 8, 16], np.array([[9.0, 2.0, 2.0, 7.0]]))
    planner = AdaptivePlanner(costs, 16, widths=(1, 2, 8, 16))
    table = CostTable(costs, 16, widths=(1, 2, 8, 16))
    assert [planner.costs.padding(rows, 0) for rows in range(1, 18)] == [
        table.padding(rows, 0) for rows in range(1, 18)
    ]
    assert [planner.costs.seconds(rows, 0) for rows in (1, 8, 16, 40)] == [2.0, 2.0, 7.0, 7.0]
    assert planner.costs.prefill_seconds(40, 0) == 7.0 * 40 / 16
    one, other = planner.begin(), planner.begin(is_edit=True)
    assert one.costs is other.costs is planner.costs
    assert one.acceptance is not other.acceptance
