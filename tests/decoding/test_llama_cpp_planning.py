"""What is planned for a model behind llama.cpp: drafts by what forwards cost and by what it takes.

What needs llama-cpp-python is skipped without it.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import conformance
import numpy as np
import pytest
from quantised_by_llama_cpp import recurrent, saved
from text_cases import data_cases
from tiny_models import Oracle

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.drafting.base import DraftRequest
from accel.errors import UnsupportedModel
from accel.files.model_options import ModelOptions
from accel.models.base import BatchKind
from accel.models.costs import first_costs
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.learnt_costs import LearntCosts
from accel.models.cpu.quantised.instruction_sets import INSTRUCTION_SETS
from accel.models.llama_cpp import opening
from accel.models.llama_cpp.library_files import (
    VARIABLE,
    has_gpu_library,
    library_names,
)
from accel.models.llama_cpp.model import WIDTHS, LlamaCppModel
from accel.models.llama_cpp.opening import kind_of
from accel.models.model_file import GgufModel, model_file
from accel.planning.planner import FixedBatchPlanner
from tests.llama_cpp_package import has_package

installed = pytest.mark.skipif(not has_package(), reason="llama-cpp-python is not installed")


@pytest.fixture(autouse=True)
def quickly_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def costing(monkeypatch: pytest.MonkeyPatch, *milliseconds: float) -> list[int]:
    """Have forwards seem to cost so much by rows, and count how often that is estimated."""
    seconds = np.array([milliseconds]) * 1e-3
    estimated: list[int] = []

    def first(_model: Any) -> ForwardCosts:
        estimated.append(1)
        return ForwardCosts([256], list(WIDTHS), seconds)

    monkeypatch.setattr(first_costs, "first_costs", first)
    # Forwards of a tiny model really cost something else.
    monkeypatch.setattr(LearntCosts, "note", lambda *_: None)
    return estimated


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
    assert engine.model.learnt is not None
    assert "8: 12.0 ms" in str(engine.model.learnt.costs)
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
def test_a_probe_finds_trees_chains_or_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LlamaCppModel(saved(tmp_path / "m.gguf"), ModelOptions(threads=1))
    assert kind_of(model) == BatchKind.TREE
    model.capability = replace(model.capability, kind=BatchKind.CHAIN)
    assert kind_of(model) == BatchKind.CHAIN
    monkeypatch.setattr("accel.models.llama_cpp.opening._agrees", lambda *_: False)
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

    monkeypatch.setattr(opening, "LlamaCppModel", open_theirs)
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
    model = SimpleNamespace(is_on_gpu=is_on_gpu, close=lambda: closed.append(True))
    closed: list[bool] = []
    monkeypatch.setattr("accel.models.cpu.quantised.instruction_sets.chosen", lambda: "avx2")
    monkeypatch.setattr(opening, "has_gpu_library", lambda: True)
    monkeypatch.setattr(opening, "LlamaCppModel", lambda *_: model)
    monkeypatch.setattr(opening, "_opened", lambda *_: "theirs")
    about = model_file(saved(tmp_path / "m.gguf"))
    assert isinstance(about, GgufModel)
    assert opening.open_asked(about, ModelOptions()) == ("theirs" if is_on_gpu else None)
    assert closed == ([] if is_on_gpu else [True])


@data_cases()
def test_a_library_for_a_gpu_is_known_by_its_file(
    name: str, is_gpu: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    for file in (*library_names(), name):
        (tmp_path / file).write_bytes(b"")
    assert has_gpu_library() == is_gpu
