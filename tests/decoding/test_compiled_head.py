"""The walk of the compiled forward: the tokens that whole logits give, and no more rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import VOCABULARY, Oracle, compiled, numbers, open_engine, save

from accel.decoding.request import GenerationRequest
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.models.array_logits import VerifiedLogits
from accel.models.base import Cache
from accel.models.batch import chain_batch, tree_batch
from accel.models.cpu.llama import CompiledLlama
from accel.models.cpu.lm_head import COLUMNS, FIRST_ROWS, all_logits, argmax_of_columns, choose_rows
from accel.models.cpu.matmul import BLOCK, packed
from accel.verification.verify_tree import verify_tree

WIDE: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 32}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("wide"), "llama", **WIDE)


@pytest.fixture(scope="module", params=["fp32", "int8"])
def model(folder: Path, request: pytest.FixtureRequest) -> CompiledLlama:
    torch.set_num_threads(1)
    made = compiled(folder, request.param)
    made.threads = 3
    return made


def tree_along(text: TokenArray, others: int, random: np.random.Generator) -> DraftTree:
    """A tree with ``text`` as one branch and ``others`` wrong nodes, in an order by chance."""
    tokens: list[int] = []
    parents: list[int] = []
    end = -1
    kinds = random.permutation([True] * len(text) + [False] * others)
    for is_right in kinds.tolist():
        if is_right:
            token, parent = int(text[sum(kinds[: len(tokens)])]), end
            end = len(tokens)
        else:
            token = int(random.integers(VOCABULARY))
            parent = int(random.integers(-1, len(tokens))) if tokens else -1
        tokens.append(token)
        parents.append(parent)
    return DraftTree(
        np.array(tokens, np.int32),
        np.array(parents, np.int32),
        np.ones(len(tokens), np.float32),
        np.full(len(tokens), Source.PROMPT, np.int8),
    )


def continuation(model: CompiledLlama, text: TokenArray, count: int) -> TokenArray:
    """Return ``count`` tokens of the model after a text, one by one."""
    cache = read(model, text[:-1])
    actual = [int(text[-1])]
    for _ in range(count):
        batch = chain_batch(np.array(actual[-1:], np.int32), 0)
        actual.append(int(numbers(model, batch, cache)[0].argmax()))
        cache.commit([0])
    return np.array(actual[1:], np.int32)


def read(model: CompiledLlama, text: TokenArray) -> Cache:
    cache = model.new_cache(64)
    model.forward(chain_batch(text, len(text)), [cache])
    cache.commit(list(range(len(text))))
    return cache


@pytest.mark.parametrize("threads", [1, 2])
def test_walks_as_whole_logits_say(model: CompiledLlama, threads: int) -> None:
    """Short and long paths, wide trees, roots behind several pending tokens; also by threads that
    take half of the rows and of the vocabulary each."""
    seed = int(np.random.default_rng().integers(2**31))
    random = np.random.default_rng(seed)
    longest = 0
    for length in (45, *random.integers(0, 46, 11)):
        text = random.integers(0, 256, 20).astype(np.int32)
        right = continuation(model, text, 45)[:length]
        tree = tree_along(right, int(random.integers(0, 40)), random)
        pending = int(random.integers(1, 5))
        rows = tree_batch(text[-pending:], tree)
        cache = read(model, text[:-pending])
        model.threads = 1
        chosen = numbers(model, rows, cache).argmax(-1).tolist()
        expected = verify_tree(tree, lambda node, _above, chosen=chosen: chosen[node + 1])
        model.threads = threads
        logits = model.forward(rows, [cache])
        assert isinstance(logits, VerifiedLogits), f"seed {seed}"
        assert (logits.path, logits.tokens.tolist()) == expected, f"seed {seed}"
        found = logits.argmax()
        assert verify_tree(tree, lambda node, _above, found=found: found[node + 1]) == expected, (
            f"seed {seed}"
        )
        assert list(found) == chosen, f"seed {seed}"
        longest = max(longest, len(expected[0]))
    assert longest > FIRST_ROWS, f"seed {seed}"


@pytest.mark.parametrize("vocabulary", [1, 33, 300, 2 * COLUMNS, 2 * COLUMNS + 40])
def test_the_first_of_the_highest_is_taken(vocabulary: int) -> None:
    """Few values, so that equal logits are common; also where all are below zero."""
    random = np.random.default_rng(vocabulary)
    for shift in (0, -9):
        whole = random.integers(-1, 2, (vocabulary, 8)).astype(np.float32)
        inputs = random.integers(-1, 2, (5, 8)).astype(np.float32)
        inputs[:, 0], whole[:, 0] = 1, shift
        expected = (inputs @ whole.T).argmax(-1)
        scores, tokens = np.empty(5, np.float32), np.empty(5, np.int32)
        head, q8 = packed(whole)[None], np.empty((5, 0), np.int8)
        logits = np.empty((5, COLUMNS), np.float32)
        argmax_of_columns(inputs, q8, 5, head, 0, head.shape[1], vocabulary, logits, scores, tokens)
        assert tokens.tolist() == expected.tolist()
        whole_logits = np.empty((2, head.shape[1] * BLOCK), np.float32)
        all_logits(inputs, q8, 3, 2, head, whole_logits)
        assert whole_logits[:, :vocabulary].argmax(-1).tolist() == expected[3:].tolist()
        half = -(-vocabulary // BLOCK) // 2
        first, last = scores.copy(), tokens.copy()
        argmax_of_columns(inputs, q8, 5, head, 0, half, vocabulary, logits, first, tokens)
        parts = half, head.shape[1], vocabulary
        argmax_of_columns(inputs, q8, 5, head, *parts, logits, scores, last)
        assert np.where(scores > first, last, tokens).tolist() == expected.tolist()


def test_a_block_is_a_node_and_its_first_descendants() -> None:
    parents = np.array([-1, 0, 0, -1, 1, 4, 3, 2], np.int32)
    positions = np.empty(9, np.int32)
    assert choose_rows(0, parents, positions, 4) == 4
    assert positions.tolist() == [-1, 0, 1, 2, -1, 3, -1, -1, -1]
    assert choose_rows(-1, parents, positions, 16) == 9
    assert positions.tolist() == list(range(9))
    assert choose_rows(7, parents, positions, 16) == 1


def test_a_text_is_the_same_with_logits_and_without(folder: Path) -> None:
    """Drafts of all kinds, and the end token."""
    engine = open_engine(folder)
    made = compiled(folder)
    random = np.random.default_rng(4)
    made.end_tokens = engine.model.end_tokens
    for _ in range(2):
        text = random.integers(0, 256, 30).astype(np.int32)
        request = GenerationRequest(text, max_tokens=50)
        expected = engine.generate(request).finish().tokens
        for step in range(3):
            drafter = Oracle(expected, step)
            engine_of_logits, engine.model = engine.model, made
            request = GenerationRequest(text, max_tokens=50, drafter=drafter)
            assert engine.generate(request).finish().tokens.tolist() == expected.tolist()
            engine.model = engine_of_logits
