"""What forwards cost: measured at the first starts, the fastest counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from accel import opening
from accel.opening import Settings, profile
from accel.profile import LONGEST_ROUND_S, MOST_LOOKS, Costs, look_again
from accel.store import Store

ONCE = Costs([64, 256], [1, 8, 16], np.array([[1.0, 2, 4], [2.0, 3, 5]]) * 1e-4)
SETTINGS = Settings(torch.bfloat16, 1, may_share=True)


def model_of(*, can_share: bool) -> Any:
    return type("Model", (), {"can_share": can_share, "shared_from": 0})()


def test_a_lucky_row_alone_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    now = ONCE.seconds * np.array([0.7, 1.2, 1.2])
    monkeypatch.setattr(
        "accel.profile.shared_seconds", lambda _m, _c, counts, _s: now[:, : len(counts)]
    )
    found = look_again(model_of(can_share=True), replace(ONCE, shared_from=1), 0.1)
    assert found.seconds.tolist() == ONCE.seconds.tolist()


def test_the_fastest_look_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What two threads take counts from where they share alone."""
    monkeypatch.setattr("accel.profile.FEW_ROWS", 8)
    factors = iter((1.5, 0.5, 0.4, 3.0, 0.45))

    def shared_seconds(_model: Any, _contexts: Any, counts: list[int], _s: float) -> Any:
        # The last of all rows is that of the look: few rows are timed before.
        if len(counts) < len(ONCE.rows):
            return np.full((2, len(counts)), np.inf)
        return ONCE.seconds * next(factors)

    monkeypatch.setattr("accel.profile.shared_seconds", shared_seconds)
    costs, model = replace(ONCE, shared_from=8), model_of(can_share=True)
    kept = []
    for _ in range(5):
        costs = Costs.from_json(look_again(model, costs, 0.1).to_json())
        kept.append(round(float(costs.seconds[0, 1] / ONCE.seconds[0, 1]), 3))
        assert costs.seconds[:, 0].tolist() == ONCE.seconds[:, 0].tolist()
    assert kept == [1.0, 0.5, 0.4, 0.4, 0.4]
    assert (costs.shared_from, costs.looks) == (8, 6)


@pytest.mark.parametrize("is_coarse", [False, True])
def test_a_coarser_look_changes_nothing(monkeypatch: pytest.MonkeyPatch, is_coarse: bool) -> None:
    half = ONCE.seconds / 2

    def measure(_model: Any, _s: float, rows: tuple[int, ...], contexts: tuple[int, ...]) -> Costs:
        if is_coarse:
            return Costs([64], [1, 16], half[:1, ::2])
        return Costs(list(contexts), list(rows), half[:, : len(rows)])

    monkeypatch.setattr("accel.profile.measure", measure)
    found = look_again(model_of(can_share=False), ONCE, 0.1)
    assert found.seconds.tolist() == (ONCE.seconds if is_coarse else half).tolist()
    assert found.looks == 2


@pytest.mark.parametrize("is_slow", [False, True])
def test_it_is_looked_at_the_first_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_slow: bool
) -> None:
    """Not again where that takes long."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    measured = replace(ONCE, seconds=ONCE.seconds * (LONGEST_ROUND_S * 1e4 if is_slow else 1))
    done: list[str] = []

    def first(*_: Any) -> Costs:
        done.append("first")
        return measured

    def again(_: Any, costs: Costs) -> Costs:
        done.append("again")
        return replace(costs, looks=costs.looks + 1)

    monkeypatch.setattr(opening, "measure", first)
    monkeypatch.setattr(opening, "share", lambda _model, costs, _s: replace(costs, shared_from=8))
    monkeypatch.setattr(opening, "look_again", again)
    for _ in range(MOST_LOOKS + 2):
        model = model_of(can_share=True)
        costs = profile(model, SETTINGS, Store("looked-at"))
        assert model.shared_from == 8
    looks = 1 if is_slow else MOST_LOOKS
    assert done == ["first", *["again"] * (looks - 1)]
    assert costs.looks == looks


def test_few_rows_cost_no_bump() -> None:
    """A count that was held up lies on the line between others; steps of many rows stay."""
    costs = Costs([256], [1, 2, 3, 4, 8, 16, 17], np.array([[10.0, 19, 14, 18, 34, 40, 60]]))
    assert costs.by_rows(256, 17)[[1, 2, 3, 4, 6, 8, 16, 17]].tolist() == [
        *(10, 12, 14, 18, 26, 34, 40, 60)
    ]
    straight = Costs([256], [1, 4], np.array([[1.0, 2.5]]))
    assert straight.by_rows(256, 6)[1:].tolist() == [1, 1.5, 2, 2.5, 3, 3.5]
    falling = Costs([256], [1, 2, 8], np.array([[9.0, 2.0, 2.0]]))
    assert falling.by_rows(256, 8)[1:].tolist() == [9, *[2] * 7]
