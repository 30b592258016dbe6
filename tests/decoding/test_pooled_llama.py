"""Requests in one pool, by forwards of fixed widths, against the lean forward and transformers."""

from __future__ import annotations

from pathlib import Path

import conformance
import numpy as np
import pytest
import torch
from tiny_models import (
    Oracle,
    compiled,
    numbers,
    open_engine,
    pooled,
    reference_module,
    reference_tokens,
    save,
)

from accel.decoding.request import GenerationRequest
from accel.errors import OutOfMemory
from accel.models.base import Cache
from accel.models.batch import ForwardBatch, chain_batch, tree_batch
from accel.models.cuda import pooled_llama
from accel.models.cuda.kv_pool import PooledCache
from accel.models.cuda.pooled_llama import NARROW
from accel.models.hf_loading import load_module
from accel.models.probe import Probe, ancestors

CPU = torch.device("cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "mistral"])
def test_logits_are_the_modules(kind: str, dtype: torch.dtype, tmp_path: Path) -> None:
    folder = save(tmp_path, kind)
    model = pooled(folder, dtype)
    assert Probe(load_module(folder, dtype, CPU, "eager")).agrees(model, model.capability.kind)


def test_trees_of_any_size_equal_our_own_forward(tmp_path: Path) -> None:
    """Trees of 1 to 150 rows one after another, a branch kept of each, and prompts between them,
    beyond the splits of attention."""
    folder = save(tmp_path, "llama", max_position_embeddings=4096)
    model = pooled(folder)
    own = compiled(folder)
    random = np.random.default_rng(0)
    ours, theirs = model.new_cache(16), own.new_cache(16)

    def compare(rows: ForwardBatch, kept: list[int]) -> None:
        np.testing.assert_allclose(
            numbers(model, rows, ours), numbers(own, rows, theirs), rtol=1e-3, atol=1e-4
        )
        for cache in (ours, theirs):
            cache.commit(kept)

    for count in range(0, 150, 5):
        tree = conformance.random_tree(random, count)
        kept = [0, *(1 + node for node in ancestors(tree, count - 1))]
        compare(tree_batch(np.array([count], np.int32), tree), kept)
        if count % 20 == 0:
            text = random.integers(0, 256, 300).astype(np.int32)
            compare(chain_batch(text, len(text)), list(range(len(text))))
    assert ours.length > 2300


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_has_its_numbers_whatever_is_around_it(dtype: torch.dtype, tmp_path: Path) -> None:
    """The tokens of a text one by one, in a tree among other branches behind any part of it, alone
    and among others: the same to the last bit."""
    model, random = pooled(save(tmp_path, "llama"), dtype), np.random.default_rng(3)
    text = random.integers(0, 256, 300).astype(np.int32)
    begin = 250
    caches = [model.new_cache(1) for _ in range(3)]
    for cache in caches:
        conformance.feed(model, cache, text[:begin])
    expected = []
    for token in text[begin:]:
        expected.append(numbers(model, chain_batch(np.array([token], np.int32), 0), caches[0])[0])
        caches[0].commit([0])
    for company in (False, True):
        place, cache = begin, caches[1 + company]
        while place < len(text) - 1:
            depth = min(int(random.integers(0, 20)), len(text) - 1 - place)
            tree = conformance.random_tree(random, 40)
            tree.parents[:depth] = np.arange(-1, depth - 1)
            tree.tokens[:depth] = text[place + 1 : place + 1 + depth]
            batch = tree_batch(text[place : place + 1], tree, wants_numbers=True)
            others: list[tuple[ForwardBatch, Cache]] = []
            if company:
                more = conformance.random_tree(random, int(random.integers(0, 40)))
                others = [(tree_batch(text[:1], more), model.new_cache(1)) for _ in range(2)]
            given = [*others[:1], (batch, cache), *others[1:]]
            found = list(model.forward_all(*map(list, zip(*given, strict=True))))[len(others[:1])]
            for row in range(depth + 1):
                assert np.array_equal(found.row(row), expected[place - begin + row])
            cache.commit(list(range(depth + 1)))
            place += depth + 1


def test_a_prompt_has_its_numbers_however_it_is_cut(tmp_path: Path) -> None:
    model, random = pooled(save(tmp_path, "llama"), torch.bfloat16), np.random.default_rng(5)
    text = random.integers(0, 256, 400).astype(np.int32)
    found = []
    for _ in range(3):
        cache = model.new_cache(1)
        while cache.length < len(text) - 1:
            part = text[cache.length : -1][: int(random.integers(1, 300))]
            conformance.feed(model, cache, part)
        found.append(numbers(model, chain_batch(text[-1:], 0), cache))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_text_equals_transformers(tmp_path: Path) -> None:
    """With drafts and two sessions in turn, each of which has its own keys."""
    folder = save(tmp_path, "llama")
    engine = open_engine(folder)
    ends, engine.model = engine.end_tokens, pooled(folder)
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


def test_a_full_pool_drops_the_session_used_longest_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save(tmp_path, "llama")
    monkeypatch.setattr(pooled_llama, "POOL_BYTES_ON_CPU", 900 * 1024)
    engine = open_engine(folder)
    engine.model = pooled(folder)
    assert engine.max_positions == 512
    prompts = [conformance.random_prompt(seed, 200) for seed in range(3)]
    sessions = [engine.session() for _ in prompts]
    for prompt, session in zip(prompts, sessions, strict=True):
        request = GenerationRequest(prompt, max_tokens=4, ignore_end=True)
        assert len(engine.generate(request, session).finish().tokens) == 4
    assert [session.length > 0 for session in sessions] == [False, False, True]
    with pytest.raises(OutOfMemory, match="no room for 900 tokens"):
        engine.reserve(sessions[0], 900)


def test_caches_share_one_pool_and_give_back_what_they_held(tmp_path: Path) -> None:
    """Until it is full: then a forward fails before it computes anything."""
    model = pooled(save(tmp_path, "llama"))
    free = model.pool.left
    caches = [PooledCache(model.pool) for _ in range(free // 512 + 1)]
    for cache in caches[:-1]:
        cache.reserve(500)
    with pytest.raises(MemoryError, match="places are left"):
        caches[-1].reserve(512)
    caches[-1].reserve(model.pool.left)
    held = np.concatenate([cache.places for cache in caches])
    assert sorted(held.tolist()) == list(range(1, free + 1))
    full = model.new_cache(1)
    with pytest.raises(MemoryError):
        model.forward(chain_batch(np.zeros(NARROW, np.int32), 0), [full])
    del caches, cache
    assert model.pool.left == free
    numbers(model, chain_batch(np.zeros(NARROW, np.int32), 0), full)
