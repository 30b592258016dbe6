"""What is planned for a model behind llama.cpp: drafts by what forwards cost and by what it takes.

What needs llama-cpp-python is skipped without it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import conformance
import numpy as np
import psutil
import pytest
from llama_cpp_worker import silent_worker
from quantised_by_llama_cpp import recurrent, saved
from tiny_models import Oracle

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.drafting.base import DraftRequest
from accel.errors import Interrupted, UnsupportedModel
from accel.files.model_options import ModelOptions
from accel.models.base import BatchKind
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.profile_store import ProfileStore
from accel.models.costs.typical_rate import typical_rate
from accel.models.cpu.quantised.instruction_sets import INSTRUCTION_SETS
from accel.models.llama_cpp import opening, process, row_costs
from accel.models.llama_cpp.library_files import LibraryFile, has_package
from accel.models.llama_cpp.model import LlamaCppModel
from accel.models.llama_cpp.probe import kind_of
from accel.models.model_file import GgufModel, model_file
from accel.planning.fixed_batch_planner import FixedBatchPlanner

installed = pytest.mark.skipif(not has_package(), reason="llama-cpp-python is not installed")


@pytest.fixture(autouse=True)
def quickly_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(row_costs, "BUDGET_S", 0.1)


def costing(monkeypatch: pytest.MonkeyPatch, *milliseconds: float) -> list[int]:
    """Have forwards cost so much by rows, and count how often that is measured."""
    seconds = np.array([milliseconds]) * 1e-3
    measured: list[int] = []

    class KnownCosts:
        is_finished = False

        def __init__(self, _model: Any) -> None:
            measured.append(1)
            self.costs = ForwardCosts([256], [1, row_costs.PIECE], seconds[:, :2])

        def go_on(self, interrupted: Callable[[], bool] = lambda: False) -> bool:
            if interrupted():
                return False
            self.costs = ForwardCosts([256], list(row_costs.WIDTHS), seconds)
            return True

    monkeypatch.setattr(opening, "RowCosts", KnownCosts)
    return measured


def widths_of(engine: Engine) -> tuple[int, ...]:
    assert isinstance(engine.planner, FixedBatchPlanner)
    return tuple(engine.planner.chosen.values())


def written(engine: Engine, drafter: Any) -> Any:
    request = GenerationRequest(np.arange(30, dtype=np.int32), 30, drafter, ignore_end=True)
    return engine.generate(request).finish()


@installed
def test_drafts_that_lose_against_plain_decoding_are_off_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = costing(monkeypatch, 10, 40, 80, 120, 160, 320)
    engine = Engine.load(saved(tmp_path / "m.gguf"), backend="llama-cpp", threads=1)
    assert widths_of(engine) == (1, 1)
    assert (
        "completions and edits without drafts: forwards of several rows take too long"
        in engine.notice
    )
    assert "1: 10.0 ms, 4: 40.0 ms" in engine.notice
    plain = written(engine, None).tokens
    drafted = written(engine, Oracle(plain))
    assert drafted.tokens.tolist() == plain.tolist()
    assert not sum(drafted.statistics.accepted)
    # It is known from now on.
    again = Engine.load(tmp_path / "m.gguf", backend="llama-cpp", threads=1)
    assert widths_of(again) == (1, 1)
    assert len(measured) == 1


@installed
def test_drafts_that_pay_are_made_and_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costing(monkeypatch, 10, 11, 12, 20, 30, 60)
    engine = Engine.load(saved(tmp_path / "m.gguf"), backend="llama-cpp", threads=1)
    assert widths_of(engine) == (8, 8)
    assert engine.notice == ""
    assert "8: 12.0 ms" in engine.model.measured
    plain = written(engine, None).tokens
    assert sum(written(engine, Oracle(plain)).statistics.accepted)


@installed
def test_completions_and_edits_have_widths_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costing(monkeypatch, 10, 28, 40, 60, 80, 160)
    engine = Engine.load(saved(tmp_path / "m.gguf"), backend="llama-cpp", threads=1)
    assert widths_of(engine) == (1, 8)
    assert "completions without drafts" in engine.notice
    prompt = np.arange(30, dtype=np.int32)
    for drafted in (DraftRequest(prompt), DraftRequest(prompt, original=prompt)):
        texts = []
        for draft in (False, True):
            drafter = Oracle(np.array(texts[0], np.int32), depth=5) if draft else None
            request = GenerationRequest(prompt, 30, drafter, drafted, ignore_end=True, plan=False)
            generation = engine.generate(request).finish()
            texts.append(generation.tokens.tolist())
        assert texts[0] == texts[1]
        assert bool(sum(generation.statistics.accepted)) == (drafted.original is not None)


@installed
def test_costs_are_measured_at_the_widths_where_kernels_change(tmp_path: Path) -> None:
    model = LlamaCppModel(saved(tmp_path / "m.gguf"), ModelOptions(threads=1))
    measuring = row_costs.RowCosts(model)
    assert measuring.costs.rows == [1, row_costs.PIECE]
    # Whatever comes waits for one number of rows; what is known then is kept.
    known = [2]
    while not measuring.go_on(lambda: True):
        known.append(len(measuring.costs.rows))
        assert known[-1] - known[-2] in (0, 1)
    costs = measuring.costs
    assert {1, 8} <= set(costs.rows) <= {*row_costs.WIDTHS, row_costs.PIECE}
    assert (costs.seconds > 0).all()
    assert measuring.go_on()


@installed
def test_what_is_measured_behind_the_first_answer_plans_the_requests_that_begin_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = costing(monkeypatch, 10, 11, 12, 20, 30, 60)
    options: dict[str, Any] = {"backend": "llama-cpp", "threads": 1, "measures_later": True}
    engine = Engine.load(saved(tmp_path / "m.gguf"), **options)
    plain = written(engine, None).tokens
    rows: list[int] = []
    forward = engine.model.forward

    def noted(batch: Any, caches: Any) -> Any:
        rows.append(len(batch))
        return forward(batch, caches)

    monkeypatch.setattr(engine.model, "forward", noted)
    request = GenerationRequest(np.arange(30, dtype=np.int32), 30, Oracle(plain), ignore_end=True)
    generation = iter(engine.generate(request))
    begun = next(generation).tokens.tolist()
    assert not engine.measure(lambda: True)
    assert engine.measure()
    assert not engine.measure()
    rows.clear()
    # A request keeps the number of rows that it began with.
    assert begun + [token for chunk in generation for token in chunk.tokens] == plain.tolist()
    assert set(rows) == {1}
    rows.clear()
    later = written(engine, Oracle(plain))
    assert sum(later.statistics.accepted)
    assert 8 in rows
    # From the next start on it is known at once.
    assert not Engine.load(tmp_path / "m.gguf", **options).measure()
    assert len(measured) == 1


@installed
def test_a_probe_finds_trees_chains_or_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LlamaCppModel(saved(tmp_path / "m.gguf"), ModelOptions(threads=1))
    assert kind_of(model) == BatchKind.TREE
    model.takes(BatchKind.CHAIN)
    assert kind_of(model) == BatchKind.CHAIN
    monkeypatch.setattr("accel.models.llama_cpp.probe._agrees", lambda *_: False)
    assert kind_of(model) == BatchKind.PLAIN


@installed
def test_a_model_whose_state_runs_over_the_text_is_computed_plainly(tmp_path: Path) -> None:
    engine = Engine.load(recurrent(tmp_path / "m.gguf"), backend="llama-cpp", threads=1)
    assert engine.model.capability.kind == BatchKind.PLAIN
    assert "without drafts: what it computes cannot be taken back" in engine.notice
    for check in ("chains", "trims", "memory", "likeliest"):
        getattr(conformance, f"check_{check}")(engine.model, 1)
    plain = written(engine, None).tokens
    assert written(engine, Oracle(plain)).tokens.tolist() == plain.tolist()


@pytest.mark.parametrize("is_left_for_later", [False, True])
@pytest.mark.parametrize(("theirs_ms", "is_faster"), [(1.0, True), (50.0, False)])
def test_the_faster_computes_where_both_can(
    theirs_ms: float,
    is_faster: bool,
    is_left_for_later: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Theirs:
        closed = False

        def close(self) -> None:
            self.closed = True

    opened: list[Theirs] = []

    def open_theirs(*_: Any) -> Any:
        opened.append(Theirs())
        costs = ForwardCosts([256], [8], np.array([[theirs_ms * 1e-3]]))
        return opening.Opened(opened[-1], costs, store, 1)  # type: ignore[arg-type]

    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    monkeypatch.setattr(opening, "COMPARED_BYTES", 0)
    monkeypatch.setattr(opening, "find_library", lambda: LibraryFile(file, "a test"))
    monkeypatch.setattr(opening, "open_by_llama_cpp", open_theirs)
    own = ForwardCosts([256], [1, 8, 32], np.array([[8e-3, 10e-3, 20e-3]]))
    store, options = ProfileStore("m"), ModelOptions(threads=1)
    if is_left_for_later:
        later = opening.open_where_faster(file, own, store, options, measures_later=True)
        assert isinstance(later, opening.LaterComparison)
        later.go_on(lambda: True)
        assert not opened
        for _ in range(2):
            later.go_on(lambda: False)
        opened.pop()
        assert not opened
    for _ in range(2):
        found = opening.open_where_faster(file, own, store, options)
        assert (found is not None) == is_faster
    # What was slower is not opened again.
    assert len(opened) == (2 if is_faster else int(not is_left_for_later))
    assert all(each.closed != is_faster for each in opened)


def test_a_request_ends_a_comparison_whatever_the_library_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process says that it has begun, and never answers."""
    began, kept = tmp_path / "began", list[bool]()
    monkeypatch.setattr(process, "COMMAND", silent_worker(began))
    monkeypatch.setattr(process, "is_installed", lambda: True)
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    own = ForwardCosts([256], [1], np.array([[8e-3]]))
    later = opening.LaterComparison(tmp_path / "m.gguf", own, ModelOptions(threads=1), kept.append)
    later.go_on(began.exists)
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(began.read_text())).wait(60)
    began.unlink()
    # It begins again when nothing came for a while.
    later.go_on(iter([False, False, True]).__next__)
    assert not began.exists()
    later.go_on(began.exists)
    assert began.exists()
    assert not kept


@installed
def test_a_comparison_that_is_ended_at_any_moment_leaves_nothing_wrong(tmp_path: Path) -> None:
    file, options = saved(tmp_path / "m.gguf"), ModelOptions(threads=1)

    class Ended(process.WorkerProcess):
        left = 0

        def call(self, name: str, *arguments: object) -> Any:
            if not self.left:
                self.abandon()
            self.left -= 1
            return super().call(name, *arguments)

    for calls in (0, 1, 2, 4, 8, 16):
        worker = Ended(file, options)
        worker.left = calls
        with pytest.raises(Interrupted):
            opening.open_by_llama_cpp(file, options, worker)
        with pytest.raises(Interrupted):
            worker.start()
    opened = opening.open_by_llama_cpp(file, options)
    assert opened.model.capability.kind == BatchKind.TREE


def test_the_rate_is_that_of_the_best_width() -> None:
    flat = ForwardCosts([256], [1, 32], np.array([[10e-3, 10e-3]]))
    steep = ForwardCosts([256], [1, 32], np.array([[10e-3, 320e-3]]))
    assert typical_rate(flat) > 4 * typical_rate(steep) > 0


OURS = {
    "AVX-512": {1: 5.6, 4: 7.5, 8: 10.2, 16: 16.4, 32: 26.8, 64: 50.4},
    "AVX2": {1: 9.5, 4: 12.5, 8: 16, 16: 28, 32: 50, 64: 93},
    "four fast cores of Arm": {1: 7, 4: 8, 8: 11, 16: 18, 32: 33, 64: 62},
}
"""Milliseconds of forwards of processors by rows; those of Arm are made up."""
GPUS = {
    "rows cost nothing": ({1: 2, 4: 2.1, 8: 2.2, 12: 2.3, 16: 2.4, 32: 2.6}, "faster"),
    "quick, and rows cost": ({1: 2, 4: 4, 8: 5, 12: 5.5, 16: 6, 32: 8}, "faster"),
    "faster by one row alone": ({1: 5, 4: 16, 8: 30, 12: 32, 16: 33, 32: 40}, "slower"),
    "each row is a forward": ({1: 5, 4: 20, 8: 40, 12: 60, 16: 80, 32: 160}, "slower"),
    "slower by one row, trees are free": ({1: 10, 4: 10.2, 8: 10.3, 16: 10.5, 32: 11}, "faster"),
    "plain alone": ({1: 5}, "slower"),
}
"""The same of GPUs, as vectors and matrices are computed by other kernels, and what they are."""


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("processor", OURS)
def test_what_a_drafted_text_takes_decides_and_not_one_row(gpu: str, processor: str) -> None:
    """A GPU that writes a token sooner, and a tree later, loses: drafts lose or tie there."""
    costs, said = GPUS[gpu]

    def rate(milliseconds: dict[int, float]) -> float:
        seconds = 1e-3 * np.array([[*milliseconds.values()]])
        return typical_rate(ForwardCosts([256], [*milliseconds], seconds))

    assert (rate(costs) > rate(OURS[processor])) == (said == "faster")
    if gpu == "faster by one row alone":
        assert costs[1] < min(ours[1] for ours in OURS.values())


@pytest.mark.parametrize(
    ("level", "is_measured"),
    [(name, name != "portable") for name in INSTRUCTION_SETS],
)
def test_where_products_are_quick_both_are_measured(
    level: str, is_measured: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Arm as on x86."""
    monkeypatch.setattr("accel.models.cpu.quantised.instruction_sets.chosen", lambda: level)
    asked: list[Path] = []

    def open_theirs(path: Path, *_: Any, **__: Any) -> Any:
        asked.append(path)
        raise UnsupportedModel("not here")

    monkeypatch.setattr(opening, "open_by_llama_cpp", open_theirs)
    about = model_file(saved(tmp_path / "m.gguf"))
    assert isinstance(about, GgufModel)
    with contextlib.suppress(UnsupportedModel):
        assert opening.open_asked(about, ModelOptions()) is None
    assert bool(asked) != is_measured
