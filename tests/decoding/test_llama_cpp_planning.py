"""What is planned for a model behind llama.cpp: drafts by what forwards cost and by what it takes.

What needs llama-cpp-python is skipped without it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import conformance
import numpy as np
import pytest
from quantised_by_llama_cpp import recurrent, saved
from tiny_models import Oracle

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.drafting.base import DraftRequest
from accel.errors import UnsupportedModel
from accel.files.model_options import ModelOptions
from accel.models.base import BatchKind
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.cpu.quantised.instruction_sets import INSTRUCTION_SETS
from accel.models.llama_cpp import opening, row_costs
from accel.models.llama_cpp.library_files import (
    VARIABLE,
    has_gpu_library,
    has_package,
    library_names,
)
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


@pytest.mark.parametrize(
    ("level", "has_gpu", "is_asked"),
    [
        *((name, False, name == "portable") for name in INSTRUCTION_SETS),
        *((name, True, True) for name in INSTRUCTION_SETS),
    ],
)
def test_llama_cpp_is_asked_where_products_are_slow_or_it_has_a_gpu(
    level: str, has_gpu: bool, is_asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Arm as on x86."""
    monkeypatch.setattr("accel.models.cpu.quantised.instruction_sets.chosen", lambda: level)
    monkeypatch.setattr(opening, "has_gpu_library", lambda: has_gpu)
    asked: list[Path] = []

    def open_theirs(path: Path, *_: Any, **__: Any) -> Any:
        asked.append(path)
        raise UnsupportedModel("not here")

    monkeypatch.setattr(opening, "open_by_llama_cpp", open_theirs)
    about = model_file(saved(tmp_path / "m.gguf"))
    assert isinstance(about, GgufModel)
    with contextlib.suppress(UnsupportedModel):
        assert opening.open_asked(about, ModelOptions()) is None
    assert bool(asked) == is_asked
    if level != "portable":
        assert opening.open_asked(about, ModelOptions(gpu_layers=0)) is None


@pytest.mark.parametrize("is_on_gpu", [False, True])
def test_a_library_whose_gpu_is_missing_leaves_a_file_to_us(
    is_on_gpu: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = SimpleNamespace(
        model=SimpleNamespace(is_on_gpu=is_on_gpu, close=lambda: closed.append(True)),
        backend=lambda _about: "theirs",
    )
    closed: list[bool] = []
    monkeypatch.setattr("accel.models.cpu.quantised.instruction_sets.chosen", lambda: "avx2")
    monkeypatch.setattr(opening, "has_gpu_library", lambda: True)
    monkeypatch.setattr(opening, "open_by_llama_cpp", lambda *_, **__: opened)
    about = model_file(saved(tmp_path / "m.gguf"))
    assert isinstance(about, GgufModel)
    assert opening.open_asked(about, ModelOptions()) == ("theirs" if is_on_gpu else None)
    assert closed == ([] if is_on_gpu else [True])


@pytest.mark.parametrize(
    ("name", "is_gpu"),
    [
        ("libggml-cuda.so", True),
        ("libggml-metal.dylib", True),
        ("ggml-vulkan.dll", True),
        ("libggml-cpu-haswell.so", False),
        ("libggml-base.so", False),
    ],
)
def test_a_library_for_a_gpu_is_known_by_its_file(
    name: str, is_gpu: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    for file in (*library_names(), name):
        (tmp_path / file).write_bytes(b"")
    assert has_gpu_library() == is_gpu
