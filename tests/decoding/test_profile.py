"""What forwards cost: measured at the first start and kept, whatever the form of the curve."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from accel.models import autotune
from accel.models.autotune import RunSettings, profile
from accel.models.base import BatchKind, Capability
from accel.models.costs import measuring
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.profile_store import ProfileStore
from lsp_server.shared.contract.prompt_length import PromptLength

ONCE = ForwardCosts([64, 256], [1, 8, 16], np.array([[1.0, 2, 4], [2.0, 3, 5]]) * 1e-4)
SETTINGS = RunSettings(torch.bfloat16, 1, may_share=True)


def two_threaded() -> Any:
    made = {"can_share": True, "shared_from": 0, "threads": 2, "most_threads": 2, "forward": None}
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


def test_what_came_ends_the_measuring_and_what_was_measured_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Until all is measured, costs are estimated."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done: list[str] = []

    def stage(name: str) -> Any:
        def measure(model: Any, *arguments: Any) -> ForwardCosts:
            model.forward()
            done.append(name)
            return replace(ONCE, shared_from=8 if name == "share" else 0)

        return measure

    for name in ("measure", "share", "behind_long_texts"):
        monkeypatch.setattr(autotune, name, stage(name))
    monkeypatch.setattr(autotune, "estimate", lambda _model: ONCE)
    monkeypatch.setattr(autotune, "_is_quiet", lambda: True)
    model = two_threaded()
    type(model).forward = lambda _self: None
    measuring, store = autotune.Profile(model, SETTINGS, ProfileStore("new")), ProfileStore("new")
    assert (measuring.costs, measuring.is_known) == (ONCE, False)
    came = iter([False, True, False, False])
    assert measuring.go_on(lambda: next(came)) is None
    assert done == ["measure"]
    assert not store.values()
    costs = measuring.go_on(lambda: next(came))
    assert costs is not None
    assert done == ["measure", "share", "behind_long_texts"]
    assert not vars(model).get("forward"), "the model is as it was"
    assert autotune.Profile(model, SETTINGS, ProfileStore("new")).is_known


def test_what_was_measured_on_a_busy_machine_is_measured_again_once_it_is_quiet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the same session, and kept then."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    is_quiet = False
    monkeypatch.setattr(autotune, "_is_quiet", lambda: is_quiet)
    factors = iter([2.0, 1.0])
    monkeypatch.setattr(
        autotune, "measure", lambda *_: replace(ONCE, seconds=ONCE.seconds * next(factors))
    )
    for name in ("share", "behind_long_texts"):
        monkeypatch.setattr(autotune, name, lambda _model, costs, *_: costs)
    measuring = autotune.Profile(two_threaded(), SETTINGS, ProfileStore("again"))
    first = measuring.go_on(lambda: False)
    assert first is not None
    assert first.was_busy
    assert measuring.then is measuring
    assert measuring.go_on(lambda: False) is None, "nothing is measured meanwhile"
    started = autotune.Profile(two_threaded(), SETTINGS, ProfileStore("again"))
    assert not started.is_known
    assert (started.costs.seconds == first.seconds).all(), "they are better than an estimate"
    is_quiet = True
    second = measuring.go_on(lambda: False)
    assert second is not None
    assert (second.seconds == ONCE.seconds).all()
    assert measuring.then is None
    assert autotune.Profile(two_threaded(), SETTINGS, ProfileStore("again")).is_known


class _Simulated:
    """A model of two threads whose forwards take what the clock of a test says."""

    can_share, shared_from, threads, most_threads = True, 0, 2, 2
    capability, device, max_positions = Capability(BatchKind.TREE), "cpu", 4096

    def __init__(self) -> None:
        self.now = 0.0

    def new_cache(self, _capacity: int) -> Any:
        return SimpleNamespace(pretend=lambda _length: None)

    def forward(self, batch: Any, _caches: Any) -> Any:
        rows = len(batch)
        shares = self.shared_from and self.shared_from <= rows
        self.now += 1e-3 * (1 + rows) * (0.5 if shares else 1.0)
        return SimpleNamespace(argmax=lambda: [0])

    def clock(self) -> float:
        self.now += 1e-6
        return self.now


def test_costs_measured_anew_are_those_of_a_first_measuring(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where a busy machine's costs have several threads share forwards meanwhile."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def measured(store: str) -> ForwardCosts:
        model: Any = _Simulated()
        clock = SimpleNamespace(perf_counter=model.clock, thread_time=model.clock)
        monkeypatch.setattr(measuring, "time", clock)
        found = autotune.Profile(model, replace(SETTINGS, threads=2), ProfileStore(store))
        assert found.costs is not None, "forwards are planned by them meanwhile"
        return found.measure()

    monkeypatch.setattr(autotune, "_is_quiet", lambda: True)
    fresh = measured("fresh")
    assert (fresh.shared_from, fresh.threads) == (1, 2)
    key = "forwards/torch.bfloat16/2/shared"
    for shared_from in (0, 1, 8):
        busy = replace(fresh, seconds=4 * fresh.seconds, shared_from=shared_from, was_busy=True)
        ProfileStore("busy").put(key, busy.to_json())
        anew = measured("busy")
        assert anew.shared_from == fresh.shared_from
        assert anew.seconds == pytest.approx(fresh.seconds, rel=0.01)
    assert set(json.loads((tmp_path / "redraft/profiles/busy.json").read_text())) == {key}


def test_costs_are_estimated_by_a_forward_of_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_once", lambda _model, count, _context: 1e-2 * count)
    model: Any = SimpleNamespace(max_positions=100)
    costs = measuring.estimate(model)
    assert costs.rows == [1, 8, 64]
    assert costs.seconds[0, 0] == 1e-2
    assert (np.diff(costs.seconds[0]) > 0).all()


def seconds_of(rows: int, context: int) -> float:
    """A model of which attention takes most behind a long text."""
    return 1e-3 * (5 + rows) + 1e-6 * rows * context


def test_long_texts_are_measured_where_the_grid_was_too_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []

    class Timer:
        def __init__(self, _model: Any, context: int, _most: int, _clock: Any = None) -> None:
            self._context = context

        def seconds(self, rows: int) -> float:
            looked.append(rows)
            return seconds_of(rows, self._context)

    monkeypatch.setattr(measuring, "_Timer", Timer)
    model: Any = SimpleNamespace(max_positions=4096)
    rows = [1, 8, 64]
    near = ForwardCosts([256], rows, np.array([[seconds_of(count, 256) for count in rows]]))
    costs = measuring.behind_long_texts(model, near)
    assert set(looked) == {1, 64}
    for context in (256, 1000, 2048, 6000):
        found = costs.by_rows(context, 64)
        assert found[rows] == pytest.approx([seconds_of(count, context) for count in rows])
    assert measuring.behind_long_texts(model, costs) is costs
    model.max_positions = 2048
    assert measuring.behind_long_texts(model, near) is near


def test_a_prompt_is_as_long_as_its_attention_allows() -> None:
    """1.5 seconds are fewer tokens where forwards take longer behind long texts."""
    contexts, rows = [256, 2048], [1, 64]
    seconds = np.array([[seconds_of(count, context) for count in rows] for context in contexts])
    costs = ForwardCosts(contexts, rows, seconds)
    length = PromptLength.measured(lambda count, at: costs.by_rows(at, count)[count], 64, 8192)
    tokens = length.tokens(1.5)
    spent = sum(seconds_of(64, at) for at in range(0, tokens, 64))
    assert 1.3 < spent < 1.6
