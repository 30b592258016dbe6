"""Mask rows: gated, invisible to all other rows, and the same as in training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import VOCABULARY, save

from accel.compiled_llama import CompiledLlama
from accel.draft_tree import DraftTree, Source
from accel.errors import BrokenModel, UnsupportedModel
from accel.llama import LlamaModel
from accel.loading import load_module
from accel.mask_tokens import FILE, MaskTokens, read_weights, save_weights, sha256_of_base
from accel.rows import MaskGroups, chain_rows, tree_rows
from accel.sources.guesses import sample
from accel.training.frozen_base import FrozenBase
from accel.training.mask_rows import (
    Parameters,
    fresh_parameters,
    group_states,
    sampled_states,
)

MASKS = 3
CPU = torch.device("cpu")


def trained(base: FrozenBase, seed: int = 1) -> Parameters:
    """Parameters that all do something."""
    random = torch.Generator().manual_seed(seed)
    return {
        name: value + 0.1 * torch.randn(value.shape, generator=random)
        for name, value in fresh_parameters(base, MASKS, 4, seed).items()
    }


def lean(folder: Path, parameters: Parameters | None = None) -> LlamaModel:
    model = LlamaModel.from_module(load_module(folder, torch.float32, CPU, "eager"))
    assert model is not None
    if parameters is not None:
        model.take_mask_tokens(MaskTokens(parameters, *tables(folder)))
    return model


def tables(folder: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings before and after the layers."""
    module: Any = load_module(folder, torch.float32, CPU, "eager")
    return module.model.embed_tokens.weight.data, module.lm_head.weight.data


def tree_of(seed: int) -> DraftTree:
    random = np.random.default_rng(seed)
    nodes = 9
    parents = np.array([random.integers(-1, node) for node in range(nodes)], np.int32)
    tokens = random.integers(0, VOCABULARY, nodes).astype(np.int32)
    return DraftTree(
        tokens, parents, np.ones(nodes, np.float32), np.full(nodes, Source.PROMPT, np.int8)
    )


@pytest.mark.parametrize("kind", ["llama", "llama-scaled", "qwen2", "qwen3"])
def test_inference_and_training_agree_on_mask_rows(kind: str, tmp_path: Path) -> None:
    folder = save(tmp_path, kind)
    base = FrozenBase(load_module(folder, torch.float32, CPU, "eager"))
    parameters = trained(base)
    tokens = torch.randint(0, VOCABULARY, (1, 24), generator=torch.Generator().manual_seed(3))
    text = base.read(tokens)
    wanted = group_states(base, parameters, text, torch.tensor([[9, 19]]))[0]
    model = lean(folder, parameters)
    cache = model.new_cache(64)
    given = tokens[0].numpy().astype(np.int32)
    with torch.inference_mode():
        model.forward(chain_rows(given[:10], 10), cache)
        cache.keep(list(range(10)))
        chain = DraftTree.chain(given[11:20], Source.PROMPT)
        rows = tree_rows(given[10:11], chain, 2, MaskGroups.alike([8], MASKS))
        logits, states = model.forward_with_masks(rows, cache)
        torch.testing.assert_close(states, wanted[1], atol=1e-4, rtol=1e-4)
        cache.trim(9)
        rows = tree_rows(given[9:10], DraftTree.empty(), 0, MaskGroups.alike([-1], MASKS))
        _, states = model.forward_with_masks(rows, cache)
        torch.testing.assert_close(states, wanted[0], atol=1e-4, rtol=1e-4)
    ordinary = base.choices(text.states)[0]
    assert logits[:10].argmax(-1).tolist() == ordinary[10:20].tolist()


@pytest.mark.parametrize("seed", range(4))
def test_ordinary_rows_are_the_same_to_the_last_bit(seed: int, tmp_path: Path) -> None:
    """fp32: with mask rows behind, and with as many rows of no meaning."""
    folder = save(tmp_path, "llama")
    base = FrozenBase(load_module(folder, torch.float32, CPU, "eager"))
    model = lean(folder, trained(base))
    tree, pending = tree_of(seed), np.array([5], np.int32)
    groups = MaskGroups.alike([-1, 2, 7], MASKS)
    prompt = np.arange(20, dtype=np.int32)
    found = []
    with torch.inference_mode():
        for rows in (
            tree_rows(pending, tree, groups.rows),
            tree_rows(pending, tree, 0, groups),
        ):
            cache = model.new_cache(64)
            model.forward(chain_rows(prompt, len(prompt)), cache)
            cache.keep(list(range(len(prompt))))
            logits, _ = model.forward_with_masks(rows, cache)
            kept = [buffer[..., : 20 + 10, :].clone() for buffer in cache.buffers]
            found.append((logits[:10], kept))
    (plain, plain_kept), (masked, masked_kept) = found
    assert torch.equal(plain, masked)
    assert all(torch.equal(a, b) for a, b in zip(plain_kept, masked_kept, strict=True))


WIDE = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 32}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_compiled_forward_computes_the_same_mask_rows(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    """And its ordinary rows are equal to the last bit with and without them."""
    folder = save(tmp_path, "llama", **WIDE)
    base = FrozenBase(load_module(folder, torch.float32, CPU, "eager"))
    tokens = MaskTokens(trained(base), *(table.to(dtype) for table in tables(folder)))
    tree, pending = tree_of(1), np.array([5], np.int32)
    groups = MaskGroups.alike([-1, 2, 7], MASKS)
    prompt = np.arange(20, dtype=np.int32)
    found = []
    for kind in (LlamaModel, CompiledLlama):
        model = kind.from_module(load_module(folder, dtype, CPU, "eager"))
        assert model is not None
        model.take_mask_tokens(tokens)
        results = []
        with torch.inference_mode():
            for hung in (groups, None):
                cache = model.new_cache(64)
                model.forward(chain_rows(prompt, len(prompt)), cache)
                cache.keep(list(range(len(prompt))))
                rows = tree_rows(pending, tree, 0, hung)
                logits, states = model.forward_with_masks(rows, cache)
                results.append((logits[:10].float(), states.float(), logits[10:].float()))
        found.append(results)
    near = 1e-5 if dtype == torch.float32 else 0.1
    for lean_part, compiled_part in zip(found[0][0], found[1][0], strict=True):
        assert float((lean_part - compiled_part).abs().mean()) < near
    (masked, _, _), (plain, _, _) = found[1]
    assert torch.equal(masked, plain)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_verification_leaves_mask_rows_as_the_forward_has_them(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    """By one thread and by two, of few rows and of many; path and tokens are those without."""
    folder = save(tmp_path, "llama", **WIDE)
    base = FrozenBase(load_module(folder, torch.float32, CPU, "eager"))
    tokens = MaskTokens(trained(base), *(table.to(dtype) for table in tables(folder)))
    model = CompiledLlama.from_module(load_module(folder, dtype, CPU, "eager"))
    assert model is not None
    model.take_mask_tokens(tokens)
    model.shares_patiently(True)
    prompt, pending = np.arange(20, dtype=np.int32), np.array([5], np.int32)
    cache = model.new_cache(64)
    model.forward(chain_rows(prompt, len(prompt)), cache)
    cache.keep(list(range(len(prompt))))
    for seed, groups in ((1, MaskGroups.alike([0], 2)), (2, MaskGroups.alike([-1, 2, 7], MASKS))):
        tree = tree_of(seed)
        path, tokens = model.verify(tree_rows(pending, tree), tree, cache)
        rows = tree_rows(pending, tree, 0, groups)
        wanted_logits, wanted_states = model.forward_with_masks(rows, cache)
        for shared_from in (0, 2):
            model.shared_from = shared_from
            same_path, same_tokens = model.verify(rows, tree, cache)
            assert (same_path, same_tokens.tolist()) == (path, tokens.tolist())
            logits, states = model.mask_rows(slice(1, groups.rows))
            assert (logits == wanted_logits[11:].numpy()).all()
            assert (states == wanted_states[1:].float().numpy()).all()
        model.shared_from = 0


def test_the_sampler_of_training_and_of_inference_agree(tmp_path: Path) -> None:
    folder = save(tmp_path, "llama")
    base = FrozenBase(load_module(folder, torch.float32, CPU, "eager"))
    parameters = trained(base)
    model = lean(folder, parameters)
    assert model.mask_tokens is not None
    sampler, head = model.mask_tokens.sampler, base.head.numpy()
    assert sampler is not None
    states = torch.randn(MASKS, base.width, generator=torch.Generator().manual_seed(2))
    previous = torch.tensor([4, 8, 15])
    wanted = (sampled_states(base, parameters, states, previous) @ base.head.T).softmax(-1)
    before = np.zeros(base.width, np.float32)
    for row, token in enumerate(previous.tolist()):
        known = sampler.state @ states[row].numpy()
        memory, chances = np.empty_like(before), np.empty(VOCABULARY, np.float32)
        sample(sampler, states[row].numpy(), known, token, before, row == 0, head, memory, chances)
        np.testing.assert_allclose(chances, wanted[row].numpy(), rtol=1e-3, atol=1e-6)
        before = memory


def test_weights_are_refused_beside_another_base(tmp_path: Path) -> None:
    one, other = save(tmp_path / "one", "llama"), save(tmp_path / "other", "llama", seed=1)
    base = FrozenBase(load_module(one, torch.float32, CPU, "eager"))
    save_weights(one / FILE, trained(base), sha256_of_base(one))
    assert set(read_weights(one / FILE, sha256_of_base(one))) == set(trained(base))
    with pytest.raises(UnsupportedModel, match="belongs to other weights"):
        read_weights(one / FILE, sha256_of_base(other))
    (one / FILE).write_bytes(b"damaged")
    with pytest.raises(BrokenModel, match="train it again"):
        read_weights(one / FILE, sha256_of_base(one))
