"""The forward in fixed shapes against the one in the shapes that come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import Oracle, numbers, open_engine, reference_module, reference_tokens, save

from accel.batch import ForwardBatch, chain_batch, tree_batch
from accel.draft_tree import DraftTree, Source
from accel.models.cuda_graphs import CudaGraphLlama, StaticCache
from accel.models.hf_loading import load_module
from accel.models.llama_torch import FusedLlama
from accel.models.probe import Probe, ancestors
from accel.request import GenerationRequest

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def static(folder: Path, dtype: torch.dtype) -> CudaGraphLlama:
    model = CudaGraphLlama.from_module(load_module(folder, dtype, CPU, "eager"))
    assert isinstance(model, CudaGraphLlama)
    return model


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "mistral"])
def test_logits_are_the_modules(kind: str, dtype: torch.dtype, tmp_path: Path) -> None:
    folder = save(tmp_path, kind)
    model = static(folder, dtype)
    assert Probe(load_module(folder, dtype, CPU, "eager")).agrees(model, model.capability.kind)


def random_tree(random: np.random.Generator, nodes: int) -> DraftTree:
    tree = DraftTree.chain(random.integers(0, 256, nodes).astype(np.int32), Source.MODEL)
    tree.parents = np.array([random.integers(-1, node) for node in range(nodes)], np.int32)
    return tree


def test_every_number_of_rows_equals_the_lean_forward(tmp_path: Path) -> None:
    """Trees of 1 to 66 rows one after another, a branch kept of each, over several sizes of the
    cache; and without logits."""
    folder = save(tmp_path, "llama")
    model = static(folder, torch.float32)
    lean = FusedLlama.from_module(load_module(folder, torch.float32, CPU, "eager"))
    assert lean is not None
    random = np.random.default_rng(0)
    ours, theirs = model.new_cache(16), lean.new_cache(16)
    assert isinstance(ours, StaticCache)

    def compare(rows: ForwardBatch, kept: list[int]) -> None:
        np.testing.assert_allclose(
            numbers(model, rows, ours), numbers(lean, rows, theirs), rtol=1e-3, atol=1e-4
        )
        for cache in (ours, theirs):
            cache.commit(kept)

    with torch.inference_mode():
        for count in range(66):
            tree = random_tree(random, count)
            kept = [0, *(1 + node for node in ancestors(tree, count - 1))]
            compare(tree_batch(np.array([count], np.int32), tree), kept)
            if count % 20 == 19:
                text = random.integers(0, 256, 150).astype(np.int32)
                compare(chain_batch(text, len(text)), list(range(len(text))))
    assert ours.length > 512
    assert max(columns for _, columns, _ in ours.steps) > 512


def test_text_equals_transformers(tmp_path: Path) -> None:
    """With drafts and two sessions in turn, each of which has its own keys."""
    folder = save(tmp_path, "llama")
    engine = open_engine(folder)
    ends, engine.model = engine.end_tokens, static(folder, torch.float32)
    engine.model.end_tokens = ends
    module = reference_module(folder)
    random = np.random.default_rng(1)
    sessions = [engine.session(), engine.session()]
    texts = [random.integers(0, 256, 40).astype(np.int32) for _ in sessions]
    expected = [reference_tokens(module, text, 40) for text in texts]
    expected = [each[: each.index(299)] if 299 in each else each for each in expected]
    for drafted in (False, True):
        for session, text, answer in zip(sessions, texts, expected, strict=True):
            drafter = Oracle(np.array(answer, np.int32), 1) if drafted else None
            request = GenerationRequest(text, max_tokens=40, drafter=drafter)
            assert engine.generate(request, session).finish().tokens.tolist() == answer
