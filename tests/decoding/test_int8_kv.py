"""Keys and values in int8: how they are rounded, and that no text depends on it more than once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bit_by_bit import check_nodes, computed
from gguf_models import random_module, save_gguf
from numpy.typing import NDArray
from seeds import for_each_seed
from tiny_models import FLAT, Oracle, compiled, numbers, save

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.draft_tree import DraftTree, Source
from accel.files.model_options import ModelOptions
from accel.models.backends import open_backend
from accel.models.batch import BLOCKED, chain_batch
from accel.models.cpu.attention import (
    AttentionBuffers,
    KVCache,
    Shape,
    attend,
    move,
    store_key,
    store_value,
)
from accel.models.cpu.kv_quantisation import absmax_quantise
from accel.models.cpu.llama import CompiledLlama
from accel.models.model_file import model_file
from accel.planning.planner import AdaptivePlanner

SIZE: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 32}
SHAPE = Shape(heads=4, kv_heads=2, head_dim=64, eps=1e-5, scaling=0.2)
ROOM = 96
"""Positions of a cache."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("int8-kv")
    return save_gguf(folder / "m.gguf", random_module("llama", **SIZE), "Q8_0")


@pytest.fixture(scope="module")
def model(file: Path) -> CompiledLlama:
    opened = compiled(file, "int8", "int8")
    assert isinstance(opened, CompiledLlama)
    return opened


def rounded(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The slow reference: whole numbers of each head of each row [.., depth], and scales."""
    largest = np.abs(vectors).max(-1, keepdims=True)
    factor = np.where(largest > 0, np.float32(127) / np.maximum(largest, 1e-20), np.float32(1))
    return np.rint(vectors * factor), (largest / np.float32(127))[..., 0]


def test_a_head_is_rounded_to_127_steps_of_its_largest_number() -> None:
    random = np.random.default_rng(0)
    vectors = (random.standard_normal((5, 64)) * 10.0 ** np.arange(-3, 2)[:, None]).astype("f4")
    vectors[3] = 0
    codes, scales = rounded(vectors)
    keys = np.zeros((1, 64, 32), np.int8)
    values = np.zeros((2, 32, 32), np.int8)
    for row, vector in enumerate(vectors.copy()):
        assert absmax_quantise(vector, 0, 64) == scales[row]
        store_key(keys, 7 * row, vector)
        store_value(values, 7 * row, vector)
        assert np.array_equal(keys[0, :, 7 * row], codes[row])
        assert np.array_equal(values[:, 7 * row].ravel(), codes[row])


def kv_cache_of(keys: NDArray[np.float32], values: NDArray[np.float32]) -> KVCache:
    """One layer of a cache that holds rows [kv_heads, rows, depth]."""
    heads, rows, head_dim = keys.shape
    kv = KVCache(
        np.zeros((1, heads, ROOM // 32, head_dim, 32), np.int8),
        np.zeros((1, heads, head_dim // 32, ROOM, 32), np.int8),
        np.zeros((1, heads, ROOM), np.float32),
        np.zeros((1, heads, ROOM), np.float32),
    )
    for head in range(heads):
        for row in range(rows):
            vector = keys[head, row].copy()
            kv.key_scales[0, head, row] = absmax_quantise(vector, 0, head_dim)
            store_key(kv.keys[0, head], row, vector)
            vector = values[head, row].copy()
            kv.value_scales[0, head, row] = absmax_quantise(vector, 0, head_dim)
            store_value(kv.values[0, head], row, vector)
    return kv


def attended(
    kv: KVCache, queries: NDArray[np.float32], mask: NDArray[np.float32], past: int
) -> NDArray[np.float32]:
    """Return the result of ``attend`` for queries [kv_heads, rows, group, depth]."""
    heads, rows, group, head_dim = queries.shape
    actual = np.zeros((rows, heads * group * head_dim), np.float32)
    buffers = AttentionBuffers.of(ROOM, SHAPE)
    offsets = np.arange(rows, dtype=np.int32)
    for head in range(heads):
        attend(
            queries.reshape(-1, head_dim),
            kv,
            0,
            mask,
            offsets,
            past,
            SHAPE,
            head,
            0,
            0,
            rows * group,
            buffers,
            actual,
        )
    return actual.reshape(rows, heads, group, head_dim).transpose(1, 0, 2, 3)


def slowly_attended(
    keys: NDArray[np.float32],
    values: NDArray[np.float32],
    queries: NDArray[np.float32],
    mask: NDArray[np.float32],
    past: int,
) -> NDArray[np.float64]:
    """The same by its definition, of rounded keys and values, in float64."""
    exact = [
        codes.astype(float) * scales[..., None] for codes, scales in map(rounded, (keys, values))
    ]
    whole = np.concatenate([np.zeros((len(mask), past)), mask], 1)
    scores = np.einsum("hrgd,hcd->hrgc", queries, exact[0]) * SHAPE.scaling + whole[None, :, None]
    probs = np.exp(scores - scores.max(-1, keepdims=True))
    probs /= probs.sum(-1, keepdims=True)
    actual: NDArray[np.float64] = np.einsum("hrgc,hcd->hrgd", probs, exact[1])
    return actual


def some_rows(
    seed: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], int, int]:
    """Keys, values and queries of a few rows behind some, and how many of each."""
    random = np.random.default_rng(seed)
    past, rows = int(random.integers(0, 60)), int(random.integers(1, 30))
    keys, values = random.standard_normal((2, 2, past + rows, 64)).astype(np.float32)
    queries = random.standard_normal((2, rows, 2, 64)).astype(np.float32)
    return keys, values * random.uniform(1e-3, 1e2), queries, past, rows


def test_attention_is_that_of_its_definition() -> None:
    for seed in range(12):
        keys, values, queries, past, rows = some_rows(seed)
        random = np.random.default_rng(seed)
        mask = np.where(random.random((rows, rows)) < 0.3, np.float32(BLOCKED), np.float32(0))
        mask = np.where(np.tri(rows, dtype=bool), mask, np.float32(BLOCKED)).astype(np.float32)
        np.fill_diagonal(mask, 0)
        actual = attended(kv_cache_of(keys, values), queries, mask, past)
        expected = slowly_attended(keys, values, queries, mask, past)
        size = np.abs(expected).max()
        np.testing.assert_allclose(
            actual / size, expected / size, atol=2e-5, err_msg=f"seed {seed}"
        )


def test_rows_move_with_their_scales() -> None:
    keys, values, _, _, _ = some_rows(3)
    kv = kv_cache_of(keys, values)
    rows = keys.shape[1]
    chosen = np.array([2, 5, rows - 1])
    move(kv, chosen, 1)
    expected = kv_cache_of(keys[:, [0, *chosen]], values[:, [0, *chosen]])
    positions = slice(0, 1 + len(chosen))
    for part, other in zip(kv, expected, strict=True):
        for head in range(2):
            if part.ndim == 3:
                assert np.array_equal(part[0, head, positions], other[0, head, positions])
            elif part is kv.keys:
                assert np.array_equal(
                    part[0, head, 0, :, positions], other[0, head, 0, :, positions]
                )
            else:
                assert np.array_equal(part[0, head, :, positions], other[0, head, :, positions])


def test_logits_are_near_those_of_16_bits(file: Path, model: CompiledLlama) -> None:
    rows = chain_batch(np.arange(90, dtype=np.int32), 0)
    wide = compiled(file, "int8")
    caches = [each.new_cache(90) for each in (model, wide)]
    short, long = (
        numbers(each, rows, cache) for each, cache in zip((model, wide), caches, strict=True)
    )
    assert 0 < np.abs(short - long).mean() / long.std() < 0.06
    assert caches[0].nbytes < 0.6 * caches[1].nbytes
    assert (model.kv_type, wide.kv_type) == ("int8", "f16")


@pytest.mark.parametrize(
    "counts", [(1, 2, 7, 16, 33, 65), pytest.param(range(1, 66), marks=pytest.mark.long)]
)
def test_threads_compute_what_one_does(model: CompiledLlama, counts: Sequence[int]) -> None:
    """To the bit, at every number of rows and of threads: logits, keys, values and scales."""
    random = np.random.default_rng(5)
    text = chain_batch(random.integers(0, 256, 21).astype(np.int32), 21)
    for count in counts:
        rows = chain_batch(random.integers(0, 256, count).astype(np.int32), 0)
        model.threads = 1
        alone, expected = computed(model, text, rows)
        for model.threads in (2, 3, 4):
            shared, cache = computed(model, text, rows)
            assert np.array_equal(alone, shared), (count, model.threads)
            for part, asked_for in zip(cache.kv, expected.kv, strict=True):
                assert (part == asked_for).all(), (count, model.threads)
    model.threads = 1


def check_random_tree(model: CompiledLlama, seed: int) -> None:
    random = np.random.default_rng(seed)
    text = random.integers(0, 256, 20 + 31 * seed).astype(np.int32)
    count = int(random.integers(2, 60))
    tree = DraftTree.chain(random.integers(0, 256, count).astype(np.int32), Source.PROMPT)
    tree.parents = np.array([random.integers(-1, node) for node in range(count)], np.int32)
    check_nodes(model, text, tree, 8, seed)


@for_each_seed(range(6))
def test_nodes_have_the_logits_of_text_to_the_last_bit(model: CompiledLlama, seed: int) -> None:
    check_random_tree(model, seed)


@pytest.mark.long
def test_weights_that_are_not_quantised_have_it_too(tmp_path: Path) -> None:
    model = compiled(save(tmp_path, "llama", **SIZE), kv_type="int8")
    for seed in range(6):
        check_random_tree(model, seed)


def test_drafts_change_no_text(file: Path, model: CompiledLlama) -> None:
    engine = Engine(
        model, model_file(file).tokenizer, AdaptivePlanner(FLAT), name="int8", threads=1
    )
    random = np.random.default_rng(3)
    for step in range(4):
        prompt = random.integers(0, 256, 40 + 9 * step).astype(np.int32)
        plain = engine.generate(GenerationRequest(prompt, max_tokens=60)).finish().tokens
        request = GenerationRequest(prompt, max_tokens=60, drafter=Oracle(plain, step))
        assert engine.generate(request).finish().tokens.tolist() == plain.tolist(), step


def test_a_cache_is_held_again_as_it_was(file: Path, model: CompiledLlama) -> None:
    """After it grew, was cut, and was written and read."""
    text = np.arange(70, dtype=np.int32)
    first, second = model.new_cache(8), model.new_cache(8)
    model.forward(chain_batch(text, 70), [first])
    first.commit(list(range(70)))
    first.trim(41)
    state = first.state()
    assert state is not None
    second.restore([part.copy() for part in state], 41)
    rows = chain_batch(text[:9], 0)
    assert np.array_equal(*(numbers(model, rows, cache) for cache in (first, second)))
    with pytest.raises(ValueError, match="another shape"):
        compiled(file, "int8").new_cache(8).restore(state, 41)


def test_a_forward_without_it_says_so(tmp_path: Path) -> None:
    folder = save(tmp_path, "bloom")
    opened = open_backend(
        ModelOptions(path=str(folder), dtype="fp32", threads=1, device="cpu", kv_type="int8")
    )
    assert opened.model.kv_type == "f16"
    assert "keys and values stay in 16 bits" in opened.model.notice
