"""What forwards cost: measured at the first start and kept, whatever the form of the curve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from accel.models import autotune
from accel.models.autotune import RunSettings, profile
from accel.planning.cost_model import ForwardCosts
from accel.planning.profile_store import ProfileStore

ONCE = ForwardCosts([64, 256], [1, 8, 16], np.array([[1.0, 2, 4], [2.0, 3, 5]]) * 1e-4)
SETTINGS = RunSettings(torch.bfloat16, 1, may_share=True)


def two_threaded() -> Any:
    made = {"can_share": True, "shared_from": 0, "threads": 2, "most_threads": 2}
    return type("Two", (), made)()


@pytest.mark.parametrize("is_quiet", [False, True])
def test_costs_are_measured_at_the_first_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_quiet: bool
) -> None:
    """And again where a busy machine hid whether more threads pay."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(autotune, "_is_quiet", lambda: is_quiet)
    done: list[str] = []

    def measure(*_: Any) -> ForwardCosts:
        done.append("measured")
        return ONCE

    def share(_model: Any, costs: ForwardCosts, _s: float) -> ForwardCosts:
        return replace(costs, shared_from=8 if len(done) > 1 else 0, threads=2)

    monkeypatch.setattr(autotune, "measure", measure)
    monkeypatch.setattr(autotune, "share", share)
    store = "kept"
    profile(two_threaded(), SETTINGS, ProfileStore(store))
    monkeypatch.setattr(autotune, "_is_quiet", lambda: True)
    for _ in range(3):
        model = two_threaded()
        costs = profile(model, SETTINGS, ProfileStore(store))
        assert model.shared_from == costs.shared_from == (0 if is_quiet else 8)
    assert len(done) == (1 if is_quiet else 2)
