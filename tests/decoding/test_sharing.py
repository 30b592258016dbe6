"""Who takes part in a shared forward, and with how many rows."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accel.execution.forwards import Forward
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.step_overheads import STEP_S
from accel.planning.cost_table import CostTable
from accel.planning.planner import AdaptivePlanner
from accel.planning.sharing import LENGTHENED, Urgent, cut_guesses, plan_step

ROWS = [1, 8, 16, 64, 256]
COSTS = ForwardCosts([512], ROWS, np.array([[0.010, 0.016, 0.026, 0.09, 0.36]]))
SESSION: Any = SimpleNamespace(length=512)
MODEL: Any = None


def planner() -> AdaptivePlanner:
    return AdaptivePlanner(COSTS)


def guessing(chances: list[float], pending: int = 1) -> Forward:
    numbers = np.array(chances, np.float32)
    rows = pending + len(chances)
    return Forward(MODEL, SESSION, rows, lambda _: MODEL, pending, numbers)


def prompt(rows: int) -> Forward:
    return Forward(MODEL, SESSION, rows, lambda _: MODEL, 1)


@pytest.mark.parametrize("seed", range(20))
def test_guesses_are_cut_where_most_tokens_a_second_are_expected(seed: int) -> None:
    """As by trying all cuts of all trees."""
    random = np.random.default_rng(seed)
    costs = planner().costs
    forwards = [
        guessing(np.sort(random.random(int(random.integers(0, 6))))[::-1].tolist())
        for _ in range(4)
    ]

    def rate(cuts: tuple[int, ...]) -> float:
        expected = sum(
            1 + float(each.chances[:cut].sum()) for each, cut in zip(forwards, cuts, strict=True)
        )
        return expected / (costs.seconds(4 + sum(cuts), 512) + 4 * STEP_S)

    best = max(rate(cuts) for cuts in itertools.product(*(range(each.rows) for each in forwards)))
    cut_guesses(forwards, costs)
    assert rate(tuple(each.rows - 1 for each in forwards)) == pytest.approx(best)


def test_costs_of_many_numbers_of_rows_are_those_of_each() -> None:
    for costs in (planner().costs, CostTable(COSTS, 8, widths=(8,)), CostTable(COSTS, limit=12)):
        found = costs.prefill_seconds_from(3, 20, 700)
        assert found.tolist() == [costs.prefill_seconds(rows, 700) for rows in range(3, 23)]


def test_few_requests_guess_deep_and_many_little() -> None:
    chances = [0.9, 0.7, 0.5, 0.35, 0.25, 0.2]
    rows = []
    for count in (2, 4, 8, 16):
        forwards = [guessing(chances) for _ in range(count)]
        cut_guesses(forwards, planner().costs)
        rows.append(max(each.rows for each in forwards))
        assert min(each.rows for each in forwards) >= 1, "none is below plain decoding"
    assert rows == sorted(rows, reverse=True)
    assert rows[0] > rows[-1]


def test_a_request_alone_keeps_its_draft() -> None:
    forward = guessing([0.9, 0.1, 0.01])
    assert plan_step([Urgent(0, forward)], planner()) == [forward]
    assert forward.rows == 4


def test_less_urgent_rows_lengthen_a_forward_by_a_quarter_at_most() -> None:
    used = planner()
    urgent, behind = guessing([]), prompt(200)
    chosen = plan_step([Urgent(2, behind), Urgent(0, urgent)], used)
    assert chosen == [urgent, behind]
    longest = LENGTHENED * used.costs.seconds(1, 512)
    assert used.costs.seconds(1 + behind.rows, 512) <= longest
    assert used.costs.seconds(2 + behind.rows, 512) > longest


def test_what_would_lengthen_it_by_more_waits() -> None:
    whole = Forward(MODEL, SESSION, 64, lambda _: MODEL, 64)
    urgent = guessing([0.5])
    assert plan_step([Urgent(0, urgent), Urgent(1, whole)], planner()) == [urgent]


def test_of_prompts_one_takes_part_by_one_chunk() -> None:
    first, second, text = prompt(64), prompt(64), guessing([])
    chosen = plan_step([Urgent(0, text), Urgent(0, first), Urgent(0, second)], planner())
    assert chosen == [text, first]
    assert first.rows == 64


def test_the_company_is_told_for_the_drafts_to_come() -> None:
    used = planner()
    plan_step([Urgent(0, guessing([0.99])) for _ in range(3)] + [Urgent(0, prompt(64))], used)
    assert used.company.requests == 3
    assert used.company.rows >= 3
    plan = used.begin()
    alone = used.costs.verify_costs(1, 512, 1.0, 0.0)
    shared = used.costs.verify_costs(1, 512, 1.0, 0.0, plan.company)
    assert shared.seconds[0] < alone.seconds[0], "a forward's fixed costs are shared"


@pytest.mark.parametrize("seed", range(100))
def test_any_company_is_planned_within_its_limits(seed: int) -> None:
    """Who is most urgent takes part, of their prompts one; all others lengthen it by a quarter at
    most; and each gets rows that it asked for."""
    random = np.random.default_rng(seed)
    used = planner()
    asked = [Urgent(int(random.integers(0, 4)), _any_forward(random)) for _ in range(12)]
    rows = [each.forward.rows for each in asked]
    rows_of = {id(each.forward): each.forward.rows for each in asked}
    chosen = plan_step(asked, used)
    most_urgent = min(each.urgency for each in asked)
    urgent = [each.forward for each in asked if each.urgency == most_urgent]
    prompts = [forward for forward in urgent if rows_of[id(forward)] > 64]
    own = [forward for forward in chosen if forward in urgent]
    assert len(set(map(id, chosen))) == len(chosen)
    assert [each for each in own if each not in prompts] == [
        each for each in urgent if each not in prompts
    ]
    assert [each for each in own if each in prompts] == prompts[:1]
    for each, most in zip(asked, rows, strict=True):
        assert each.forward.least <= each.forward.rows <= most
    seconds = [
        used.costs.prefill_seconds(sum(each.rows for each in part), 512) for part in (chosen, own)
    ]
    assert seconds[0] <= LENGTHENED * seconds[1]


def _any_forward(random: np.random.Generator) -> Forward:
    """A draft, a whole batch, or a chunk of a prompt: these have more than 64 rows."""
    kind = random.integers(0, 3)
    if kind == 0:
        return prompt(int(random.integers(65, 257)))
    if kind == 1:
        count = int(random.integers(1, 9))
        return Forward(MODEL, SESSION, count, lambda _: MODEL, count)
    return guessing(np.sort(random.random(int(random.integers(0, 9))))[::-1].tolist())
