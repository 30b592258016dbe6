"""Every architecture is answered as transformers answers it, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from text_cases import data_beside
from tiny_models import (
    CONFIGS,
    Oracle,
    numbers,
    open_engine,
    reference_module,
    reference_tokens,
    save,
)

from accel.decoding.request import GenerationRequest
from accel.errors import UnsupportedModel
from accel.models.base import BatchKind
from accel.models.hf_loading import load_module
from accel.models.probe import Probe
from accel.models.transformers_model import TransformersModel
from accel.verification.sampling import Sampling

DATA = data_beside(__file__)

PATHS = DATA["PATHS"]
USUAL = ("llama", "qwen2", "mistral-sliding", "gemma2", "bloom", "qwen3_next")
"""Of each way to compute a model one or two; the others are slow only together."""


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind in USUAL else pytest.mark.slow) for kind in PATHS],
)
def test_text_equals_transformers(kind: str, tmp_path: Path) -> None:
    """Prompts longer than the sliding windows, on one session, with drafts where possible."""
    engine = open_engine(save(tmp_path, kind))
    assert engine.execution_path == PATHS[kind]
    module = reference_module(tmp_path)
    session = engine.session()
    random = np.random.default_rng(3)
    text = random.integers(0, 256, 50).astype(np.int32)
    accepted = 0
    for step in range(2):
        expected = reference_tokens(module, text, 20)
        expected = expected[: expected.index(299)] if 299 in expected else expected
        for drafter in (None, Oracle(np.array(expected, np.int32), step)):
            request = GenerationRequest(text, max_tokens=20, drafter=drafter)
            actual = engine.generate(request, session).finish()
            assert actual.tokens.tolist() == expected, f"step {step}"
            accepted += sum(actual.statistics.accepted)
        text = np.concatenate([text[:-5], random.integers(0, 256, 9).astype(np.int32)])
    assert (accepted > 10) == (PATHS[kind] != "plain")


@pytest.mark.parametrize("kind", ["mistral-sliding", "gemma2", "bloom", "gpt2"])
def test_seeded_sampling_is_the_same_with_drafts(kind: str, tmp_path: Path) -> None:
    engine = open_engine(save(tmp_path, kind))
    prompt = np.arange(30, dtype=np.int32)
    sampling = Sampling(temperature=0.8, top_p=0.95, seed=9)
    texts = []
    for drafter in (None, Oracle(np.empty(0, np.int32), 1)):
        if drafter is not None:
            drafter.answer = np.array(texts[0], np.int32)
        request = GenerationRequest(prompt, max_tokens=30, drafter=drafter, sampling=sampling)
        texts.append(engine.generate(request).finish().tokens.tolist())
    assert texts[0] == texts[1]


def test_a_model_that_keeps_its_state_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="use another model"):
        open_engine(save(tmp_path, "mamba"))


def test_the_verdict_is_kept(tmp_path: Path) -> None:
    from tiny_models import MemoryStore

    from accel.models.torch_registry import open_model

    save(tmp_path, "bloom")
    store = MemoryStore()
    device = torch.device("cpu")
    first = open_model(tmp_path, "fp32", device, store)  # type: ignore[arg-type]
    assert store.kept == {"path/fp32": "chain"}
    again = open_model(tmp_path, "fp32", device, store)  # type: ignore[arg-type]
    assert again[1] == first[1] == "chain"


def test_the_probe_finds_a_forward_that_ignores_its_mask(tmp_path: Path) -> None:
    """A model that sees its siblings is caught, and so is one with wrong positions."""
    module = load_module(save(tmp_path, "llama"), torch.float32, torch.device("cpu"), "eager")
    probe = Probe(module)
    model = TransformersModel(module, BatchKind.TREE)
    assert probe.agrees(model, BatchKind.TREE)
    right = model.forward

    def blind(rows, caches):  # type: ignore[no-untyped-def]
        rows.mask = np.zeros_like(rows.mask)
        return right(rows, caches)

    def flat(rows, caches):  # type: ignore[no-untyped-def]
        rows.offsets = np.arange(len(rows), dtype=np.int32)
        return right(rows, caches)

    for wrong in (blind, flat):
        model.forward = wrong  # type: ignore[method-assign]
        assert not probe.agrees(model, BatchKind.TREE)
    model.forward = right  # type: ignore[method-assign]
    assert probe.agrees(model, BatchKind.CHAIN)


@pytest.mark.parametrize("kind", ["llama", "llama-scaled", "qwen2", "qwen3", "mistral"])
def test_logits_equal_the_modules_behind_a_long_text(kind: str, tmp_path: Path) -> None:
    """300 tokens in chunks, beyond one growth of the cache, to 1e-4 in fp32."""
    from accel.models.batch import chain_batch

    folder = save(tmp_path, kind)
    module = reference_module(folder)
    model = open_engine(folder).model
    tokens = np.random.default_rng(0).integers(0, 299, 300).astype(np.int32)
    cache = model.new_cache(40)
    actual = []
    with torch.inference_mode():
        for start in range(0, 300, 37):
            part = tokens[start : start + 37]
            actual.append(numbers(model, chain_batch(part, 0), cache))
            cache.commit(list(range(len(part))))
        expected = module(torch.from_numpy(tokens.astype(np.int64))[None]).logits[0]
    np.testing.assert_allclose(np.concatenate(actual), expected.numpy(), rtol=1e-4, atol=1e-4)


def test_bf16_models_verify_trees_as_well(tmp_path: Path) -> None:
    for kind in ("llama", "starcoder2"):
        folder = save(tmp_path / kind, kind)
        module = load_module(folder, torch.bfloat16, torch.device("cpu"), "eager")
        assert Probe(module).agrees(TransformersModel(module, BatchKind.TREE), BatchKind.TREE)


def test_every_configuration_is_tested() -> None:
    assert set(CONFIGS) == {*PATHS, "mamba"}
