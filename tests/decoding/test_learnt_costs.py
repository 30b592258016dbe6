"""Costs that are learnt from forwards, on a machine that is simulated: other programs come and go,
cores differ, a container's limits change."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from simulated_machine import Machine, Written, write
from tiny_models import FLAT, compiled, open_engine, save

from accel.decoding.request import GenerationRequest
from accel.models.base import BatchKind, Capability
from accel.models.costs import first_costs as opening
from accel.models.costs.first_costs import CONTEXTS, ROWS, learn_costs, numbers_of_threads
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.learnt_costs import LearntCosts
from accel.models.costs.profile_store import ProfileStore
from accel.planning.cost_table import CostTable
from lsp_server.shared.contract.prompt_length import PromptLength

FOUR = (1.0,) * 4
AFTER_S, END_S = 25.0, 35.0


def at(*steps: tuple[float, Any]) -> Callable[[float], Any]:
    """What there is from each moment on."""
    return lambda now: [value for moment, value in steps if moment <= now][-1]


def written(machine: Machine, seconds: float = END_S, seed: int = 0) -> Written:
    learnt = LearntCosts(machine.first(), numbers_of_threads(len(machine.speeds)))
    return write(machine, seconds, learnt, seed=seed)


QUIET = {
    "two cores": Machine(),
    "a small model": Machine(one_s=1.5e-3),
    "a large model": Machine(one_s=0.1),
    "four cores": Machine(speeds=FOUR),
    "eight cores": Machine(speeds=(1.0,) * 8, memory=0.3),
    "threads that meet too often": Machine(speeds=FOUR, one_s=3e-4),
    "rows that cost little": Machine(curve={1: 1.0, 16: 1.2, 64: 3.0, 256: 10.0}),
    "rows that cost much": Machine(curve={1: 1.0, 8: 5.0, 64: 40.0, 256: 160.0}),
    "fast and slow cores": Machine(speeds=(1.0, 1.0, 0.35, 0.35)),
}


@pytest.mark.parametrize("name", QUIET)
def test_a_quiet_machine_is_used_as_well_as_by_perfect_costs(name: str) -> None:
    """Threads and trees: the first minute within 25 % of the best, and soon within 5 %."""
    found = written(QUIET[name], 20.0)
    assert found.share_of_best(0.0, 20.0) > 0.9
    assert found.share_of_best(10.0, 20.0) > 0.95
    assert found.latest_p95() < 2


BUSY = {
    "one of two": Machine(load=lambda _now: 1),
    "two of two": Machine(load=lambda _now: 2),
    "one of four": Machine(speeds=FOUR, load=lambda _now: 1),
    "two of four": Machine(speeds=FOUR, load=lambda _now: 2),
    "a large model": Machine(one_s=0.1, load=lambda _now: 1),
}


@pytest.mark.parametrize("name", BUSY)
def test_beside_other_programs_the_best_threads_are_found(name: str) -> None:
    found = written(BUSY[name], 30.0)
    assert found.share_of_best(0.0, 30.0) > 0.85
    assert found.latest_p95() < 2


CHANGES = {
    "a build ends": Machine(load=at((0, 2), (20, 0))),
    "a program ends": Machine(load=at((0, 1), (20, 0))),
    "a build of four ends": Machine(speeds=FOUR, load=at((0, 4), (20, 0))),
    "a build comes and goes": Machine(speeds=FOUR, load=at((0, 0), (10, 4), (20, 0))),
    "a large model after a build": Machine(one_s=0.1, load=at((0, 2), (20, 0))),
    "a container gets less, and more": Machine(
        speeds=FOUR, quota=at((0, 4.0), (10, 1.0), (20, 4.0))
    ),
    "off the mains, and on": Machine(power=at((0, 1.0), (10, 0.4), (20, 1.0))),
}


@pytest.mark.parametrize("name", CHANGES)
def test_five_seconds_after_a_change_it_is_as_fast_as_the_best_choice(name: str) -> None:
    shares = [written(CHANGES[name], seed=10 * seed) for seed in range(3)]
    assert np.mean([found.share_of_best(AFTER_S, END_S) for found in shares]) > 0.93
    assert np.mean([found.share_of_best(0.0, 20.0) for found in shares]) > 0.85


def test_one_forward_in_fifty_is_a_trial_and_none_before_a_first_token() -> None:
    machine = replace(QUIET["two cores"], noise=0.0)
    learnt = LearntCosts(machine.first(), [1, 2])
    found = write(machine, 20.0, learnt).within(5.0, 20.0)
    others = found[found[:, 4] == 1]
    assert not others[:, 5].any()
    assert 0 < len(others) < 0.03 * len(found)


def test_costs_begun_with_wrong_ones_become_those_of_a_first_start() -> None:
    """Whatever a profile says that a busy machine stored, even that threads gain nothing."""
    machine = Machine()
    fresh = LearntCosts(machine.first(), [1, 2])
    data = fresh.to_json()
    seconds = np.array(data["seconds"])
    for factors in ((4.0, 4.0), (4.0, 20.0), (0.2, 2.0), (1.0, 10.0)):
        data["seconds"] = (seconds * np.array(factors)[:, None, None]).tolist()
        begun = LearntCosts.stored(json.loads(json.dumps(data)), [1, 2])
        assert begun is not None
        assert write(machine, 12.0, begun).share_of_best(8.0, 12.0) > 0.93, factors
        assert begun.choose(8, 500) == 2


def test_what_is_stored_is_a_beginning_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    timed: list[int] = []

    def forward(batch: Any, _caches: Any) -> Any:
        timed.append(len(batch))
        return SimpleNamespace(argmax=lambda: [0])

    def model() -> Any:
        return SimpleNamespace(
            capability=Capability(BatchKind.TREE),
            device="cpu",
            max_positions=1 << 16,
            new_cache=lambda _rows: None,
            forward=forward,
        )

    first = model()
    costs = learn_costs(first, ProfileStore("a"), "int8", [1, 2])
    assert timed == [1, 1], "a forward or two"
    while costs.seconds[0, 0] < 0.5:
        assert first.learnt.choose(1, 300) in (1, 2)
        first.learnt.note(1, 300, 1.0)
    first.learnt.save()
    again = learn_costs(model(), ProfileStore("a"), "int8", [1, 2])
    assert len(timed) == 2, "a second start times nothing"
    assert again.seconds == pytest.approx(first.learnt.costs.seconds, rel=0.35)
    learn_costs(model(), ProfileStore("a"), "int8", [1, 2, 4])
    assert len(timed) == 4, "other numbers of threads are another matter"
    for damaged in (None, {}, [], {"contexts": [1], "rows": [1], "threads": [1], "seconds": []}):
        assert LearntCosts.stored(damaged) is None


def test_forwards_are_expected_by_their_rows_on_any_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(opening, "_seconds", lambda _model, _cache, rows: 1e-2 + 1e-4 * rows)
    for device, widths in (("cpu", None), ("cuda", None), ("llama.cpp", (1, 4, 8, 32))):
        model: Any = SimpleNamespace(
            capability=Capability(BatchKind.TREE, widths=widths),
            device=device,
            max_positions=4096,
            new_cache=lambda _rows: None,
        )
        costs = opening.first_costs(model)
        assert costs.contexts == [256, 2048]
        assert set(widths or ROWS) <= set(costs.rows)
        many = costs.by_rows(256, 64)[32] / costs.by_rows(256, 64)[1]
        assert many == pytest.approx(1.3, rel=0.05) if device != "cpu" else many > 4


@pytest.mark.parametrize("kind", ["llama", "qwen3_next"])
def test_a_text_is_the_same_by_any_threads(kind: str, tmp_path: Path) -> None:
    """Logits are, to the last bit; so trials change no text, and forwards are learnt from."""
    engine = open_engine(save(tmp_path, kind), FLAT)
    request = GenerationRequest(np.arange(30, dtype=np.int32), 40, ignore_end=True)
    plain = engine.generate(request).finish().tokens.tolist()
    engine.model.learnt = LearntCosts(FLAT, [1, 2, 3])
    random, chosen = np.random.default_rng(3), set[int]()

    def choose(*_: Any, **__: Any) -> int:
        chosen.add(threads := int(random.integers(1, 4)))
        return threads

    engine.model.learnt.choose = choose  # type: ignore[method-assign]
    for _ in range(3):
        assert engine.generate(request).finish().tokens.tolist() == plain
    assert chosen == {1, 2, 3}
    assert engine.model.learnt.costs.version > 0


def test_tables_of_planners_follow_what_is_learnt() -> None:
    learnt = LearntCosts(ForwardCosts([*CONTEXTS], [*ROWS], np.full((3, len(ROWS)), 0.1)))
    table = CostTable(learnt.costs)
    before = table.seconds(8, 300), table.verify_costs(1, 300, 1.0, 0.0).seconds[7]
    for _ in range(40):
        learnt.choose(8, 300)
        learnt.note(8, 300, 0.3)
    after = table.seconds(8, 300), table.verify_costs(1, 300, 1.0, 0.0).seconds[7]
    assert all(new > 2 * old for new, old in zip(after, before, strict=True))


def test_a_prompt_is_as_long_as_its_attention_allows() -> None:
    """1.5 seconds are fewer tokens where forwards take longer after long texts."""

    def seconds_of(rows: int, context: int) -> float:
        return 1e-3 * (5 + rows) + 1e-6 * rows * context

    contexts, rows = [256, 2048], [1, 64]
    seconds = np.array([[seconds_of(count, context) for count in rows] for context in contexts])
    costs = ForwardCosts(contexts, rows, seconds)
    length = PromptLength.measured(lambda count, at: costs.by_rows(at, count)[count], 64, 8192)
    tokens = length.tokens(1.5)
    spent = sum(seconds_of(64, at) for at in range(0, tokens, 64))
    assert 1.3 < spent < 1.6


def test_the_compiled_forward_has_as_many_threads_as_it_is_told(tmp_path: Path) -> None:
    model = compiled(save(tmp_path, "llama"), "int8")
    assert model.threads == 1
