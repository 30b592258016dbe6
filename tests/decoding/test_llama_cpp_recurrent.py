"""Models whose state runs over the text, behind llama.cpp: chains where it takes rows back, else
one token after another. Skipped where llama-cpp-python is not installed.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import conformance
import numpy as np
import pytest
from numpy.typing import NDArray
from quantised_by_llama_cpp import hybrid, recurrent
from small_hybrids import FAMILIES, SLIDING, WINDOW, small_hybrid
from tiny_models import Oracle

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.errors import BackendDied
from accel.files.model_options import ModelOptions
from accel.models.base import BatchKind
from accel.models.batch import chain_batch, tree_batch
from accel.models.costs.first_costs import first_costs
from accel.models.llama_cpp.line_context import LineContext
from accel.models.llama_cpp.model import LlamaCppModel
from accel.models.llama_cpp.opening import kind_of
from lsp_server.engine.caches import Caches
from lsp_server.engine.loaded_model import LoadedModel
from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.jobs import CompletionJob
from lsp_server.shared.contract.options import EngineOptions
from tests.llama_cpp_package import has_package

pytestmark = pytest.mark.skipif(not has_package(), reason="llama-cpp-python is not installed")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LlamaCppModel:
    file = hybrid(tmp_path_factory.mktemp("hybrid") / "m.gguf")
    return LlamaCppModel(file, ModelOptions(threads=1))


def test_a_hybrid_takes_chains_of_as_many_rows_as_are_taken_back(model: LlamaCppModel) -> None:
    assert kind_of(model) == BatchKind.CHAIN
    assert model.capability.widths == (1, 4, LineContext.earlier_states + 1)
    for check in ("chains", "trims", "memory"):
        getattr(conformance, f"check_{check}")(model, 1)
    costs = first_costs(model)
    assert {1, 4, 8} <= set(costs.rows)
    assert (costs.seconds > 0).all()


def logits(
    model: LlamaCppModel, text: TokenArray, width: int, draws: np.random.Generator | None
) -> NDArray[np.float32]:
    """Behind every token from the 40th on, by forwards of one width: with right and wrong drafts,
    or none."""
    cache, position = model.new_cache(64), 40
    conformance.feed(model, cache, text[:position])
    actual: list[NDArray[np.float32]] = []
    while position < len(text) - width:
        count = int(draws.integers(0, width)) if draws is not None else 0
        right = int(draws.integers(0, count + 1)) if draws is not None else 0
        draft = text[position + 1 : position + 1 + count].copy()
        draft[right:] = (draft[right:] + 1) % 256
        tree = DraftTree.chain(draft, Source.PROMPT, 0.9) if count else DraftTree.empty()
        batch = tree_batch(text[position : position + 1], tree, width - 1 - count)
        rows = model.forward(batch, [cache])
        actual += [rows.row(row).copy() for row in range(right + 1)]
        cache.commit(range(right + 1))
        position += right + 1
    return np.array(actual)


@pytest.mark.parametrize("family", FAMILIES)
def test_families_that_mix_attention_with_a_state(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chains where the library takes rows of a family back, as of Qwen3.5 and Nemotron-H; the
    others are decoded plainly, and that is said."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine = Engine.load(small_hybrid(tmp_path / "m.gguf", family), backend="llama-cpp", threads=1)
    model = engine.model
    takes_chains = family in ("qwen35", "nemotron_h")
    assert model.capability.kind == (BatchKind.CHAIN if takes_chains else BatchKind.PLAIN)
    assert takes_chains or "without drafts: what it computes cannot be taken back" in model.notice
    for check in ("chains", "trims", "memory"):
        getattr(conformance, f"check_{check}")(model, 1)
    if takes_chains:
        text = np.random.default_rng(5).integers(0, 256, 100).astype(np.int32)
        plain = logits(model, text, 8, None)
        drafted = logits(model, text, 8, np.random.default_rng(6))
        count = min(len(plain), len(drafted))
        assert np.array_equal(plain[:count], drafted[:count])


def test_a_sliding_window_takes_trees_and_its_text_is_whole_after_it_grew(tmp_path: Path) -> None:
    """A copy of the library's state holds the last window alone: what is trimmed to less is
    computed anew."""
    model = LlamaCppModel(small_hybrid(tmp_path / "m.gguf", SLIDING), ModelOptions(threads=1))
    assert kind_of(model) == BatchKind.TREE
    for check in ("chains", "trees", "trims", "rejected_rows"):
        getattr(conformance, f"check_{check}")(model, 1)
    text = np.random.default_rng(4).integers(0, 256, 8 * WINDOW).astype(np.int32)
    cache = model.new_cache(WINDOW)
    for start in range(0, len(text), WINDOW):
        conformance.feed(model, cache, text[start : start + WINDOW])
    cache.trim(5 * WINDOW)
    conformance.feed(model, cache, text[cache.length : -1])
    actual = conformance.numbers(model, chain_batch(text[-1:], 0), cache)
    conformance.close(actual, conformance.one_by_one(model, text)[-1:])


@pytest.mark.parametrize("kind", ["F32", "Q4_0"])
def test_a_chain_with_rejected_rows_leaves_no_bit_of_them(tmp_path: Path, kind: str) -> None:
    model = LlamaCppModel(hybrid(tmp_path / "m.gguf", kind=kind), ModelOptions(threads=1))
    seed = random.randrange(1 << 30)
    print("seed", seed)
    draws = np.random.default_rng(seed)
    text = draws.integers(0, 256, 120).astype(np.int32)
    for width in (4, 8):
        plain = logits(model, text, width, None)
        drafted = logits(model, text, width, draws)
        count = min(len(plain), len(drafted))
        assert np.array_equal(plain[:count], drafted[:count])


def test_what_cannot_be_taken_back_costs_its_request_and_is_computed_anew(tmp_path: Path) -> None:
    for make in (hybrid, recurrent):
        model = LlamaCppModel(make(tmp_path / f"{make.__name__}.gguf"), ModelOptions(threads=1))
        text, forgotten = np.arange(20, dtype=np.int32), model.new_cache(8)
        conformance.feed(model, forgotten, text[:3])
        cache = model.new_cache(64)
        conformance.feed(model, cache, text[:10])
        # Nothing of this one is kept.
        model.forward(chain_batch(text[:1], 0), [cache])
        del forgotten
        with pytest.raises(BackendDied, match="computed anew"):
            model.forward(chain_batch(text[10:11], 0), [cache])
        cache.trim(10)
        assert cache.length == 0
        conformance.feed(model, cache, text[:-1])
        actual = conformance.numbers(model, chain_batch(text[-1:], 0), cache)
        conformance.close(actual, conformance.one_by_one(model, text)[-1:])
        model.close()


@pytest.mark.parametrize(("make", "kind"), [(hybrid, BatchKind.CHAIN), (recurrent, 0)])
def test_the_server_completes_by_such_a_model_and_drafts_change_no_token(
    make: Any, kind: BatchKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine = Engine.load(make(tmp_path / "m.gguf"), backend="llama-cpp", threads=1)
    assert engine.model.capability.kind == kind
    service = EngineService(EngineOptions(path="m"))
    service.use(LoadedModel(engine), Caches(engine))
    job = CompletionJob("", "a.py", "def total(values):\n    return ", "", max_tokens=24)
    plain = service.write(replace(job, plain=True))
    assert plain.tokens == 24 or plain.stopped_by
    assert service.write(job).text == plain.text
    prompt = np.arange(30, dtype=np.int32)

    def written(drafter: Any) -> Any:
        request = GenerationRequest(prompt, 30, drafter, ignore_end=True, plan=False)
        return engine.generate(request).finish()

    tokens = written(None).tokens
    drafted = written(Oracle(tokens))
    assert drafted.tokens.tolist() == tokens.tolist()
