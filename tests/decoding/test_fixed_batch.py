"""All forwards of a request have as many rows as most tokens a second come of."""

from __future__ import annotations

import numpy as np
import pytest

from accel.models.costs.forward_costs import ForwardCosts
from accel.planning.planner import FixedBatchPlanner
from tests.benchmarks.planners import frozen

ROWS = [1, 4, 8, 12, 16, 32]
DEAR = [10.0, 40.0, 80.0, 120.0, 160.0, 320.0]
"""Milliseconds by rows with which drafts do not pay."""
CHEAP = [10.0, 10.5, 11.0, 11.5, 12.0, 13.0]


def costs_of(milliseconds: list[float]) -> ForwardCosts:
    return ForwardCosts([256], ROWS, np.array([milliseconds]) * 1e-3)


@pytest.mark.parametrize(
    ("milliseconds", "sizes"),
    [(CHEAP, (12, 32)), ([10.0, 20.0, 40.0, 60.0, 80.0, 160.0], (1, 4)), (DEAR, (1, 1))],
)
def test_the_batch_size_is_that_with_most_tokens_a_second(
    milliseconds: list[float], sizes: tuple[int, int]
) -> None:
    planner = FixedBatchPlanner(costs_of(milliseconds))
    plans = [planner.begin(is_edit=is_edit) for is_edit in (False, True)]
    assert tuple(plan.costs.batch_size for plan in plans) == sizes
    assert ("without drafts" in planner.notice) == (1 in sizes)


def test_batch_sizes_follow_learnt_costs_but_for_one_under_way_and_while_frozen() -> None:
    costs = costs_of(DEAR)
    planner = FixedBatchPlanner(costs)
    begun = planner.begin()
    costs.seconds, costs.version = np.array([CHEAP]) * 1e-3, 1
    with frozen(planner):
        assert planner.begin().costs.batch_size == 1
    assert planner.begin().costs.batch_size == 12
    assert begun.costs.batch_size == 1
    # Hardly quicker is no reason for another text.
    costs.seconds, costs.version = costs.seconds * [[1, 1, 0.975, 1, 1, 1]], 2
    assert planner.begin().costs.batch_size == 12


def test_with_one_number_of_rows_there_is_no_choice() -> None:
    planner = FixedBatchPlanner(ForwardCosts([16], [1], np.array([[1e-3]])))
    assert planner.begin(is_edit=True).costs.batch_size == 1
    assert planner.notice == ""
