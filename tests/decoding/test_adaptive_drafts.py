"""Adaptive tokens in the forward that verifies: our forward reads them from a folder and beside a
file, the text stays plain decoding's, and right guesses save forwards."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf_models import random_module, save_gguf
from safetensors.torch import load_file
from tiny_models import byte_tokenizer, numbers, open_engine, random_prompt, run, save

from accel.decoding.completion_drafter import drafter_of
from accel.decoding.engine import Engine
from accel.draft_tree import DraftTree, Source
from accel.drafting import default_drafter
from accel.drafting.adaptive import (
    LEAST_CHANCE,
    LIKELIEST,
    MOST_GUESSES,
    AdaptiveDrafter,
    likely_paths,
)
from accel.drafting.sdsat import SdsatDrafter
from accel.files.adaptive_tokens import adaptive_file
from accel.models.batch import chain_batch
from accel.models.cpu.llama import CompiledLlama
from accel.text.tokenizer import Tokenizer
from accel.verification.sampling import Sampling
from tests.adaptive_file import save_adaptive_tokens
from tests.draft_trees import merged

WIDE: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 32}
ALIKE = np.array([5, 77, 9], np.int32)
"""Tokens whose embeddings the adaptive tokens have."""
TOKENIZER = Tokenizer(byte_tokenizer())
SAMPLINGS = [
    Sampling(),
    Sampling(temperature=0.3, top_p=0.95, seed=7),
    Sampling(temperature=1.0, top_k=10, seed=8),
    Sampling(repetition_penalty=1.2),
]


@pytest.fixture(scope="module", params=["fp32", "int8", "file"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("model")
    if request.param == "file":
        module = random_module("llama", **WIDE)
        path, dtype = save_gguf(folder / "model.gguf", module, "Q8_0"), "int8"
        table = module.model.embed_tokens.weight.detach()
    else:
        path, dtype = save(folder, "llama", **WIDE), request.param
        table = load_file(folder / "model.safetensors")["model.embed_tokens.weight"].float()
    save_adaptive_tokens(path, table[ALIKE].numpy())
    engine = open_engine(path, dtype=dtype)
    assert isinstance(engine.model, CompiledLlama)
    assert len(engine.model.adaptive_tokens) == len(ALIKE)
    return engine


def test_likely_paths_are_the_likeliest_of_all() -> None:
    for seed in range(60):
        random = np.random.default_rng(seed)
        rows = []
        for _ in range(int(random.integers(0, 4))):
            chances = np.sort(random.random(3))[::-1].astype(np.float32)
            rows.append((random.choice(100, 3, replace=False).astype(np.int32), chances))
        every = [
            float(np.prod([chances[way] for (_, chances), way in zip(rows, path, strict=False)]))
            for depth in range(1, len(rows) + 1)
            for path in product(range(3), repeat=depth)
        ]
        for most in (0, 1, 2, 5, 39, 100):
            actual = likely_paths(rows, most)
            expected = sorted(every, reverse=True)[:most]
            assert [chance for *_, chance in actual] == pytest.approx(expected), f"seed {seed}"
            assert all(parent < node for node, (parent, *_) in enumerate(actual))


def test_rows_of_adaptive_tokens_are_those_of_their_embeddings(engine: Engine) -> None:
    prompt = random_prompt(3, 20)
    actual = [
        numbers(engine.model, chain_batch(np.concatenate([prompt, own]), 0), cache)
        for own in (ALIKE, np.array(engine.model.adaptive_tokens, np.int32))
        for cache in [engine.model.new_cache(64)]
    ]
    np.testing.assert_array_equal(*actual)
    assert actual[0].shape[1] == engine.model.vocabulary_size
    assert min(engine.model.adaptive_tokens) >= engine.model.vocabulary_size


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "0.3", "1", "penalty"])
def test_the_text_is_that_of_plain_decoding(engine: Engine, sampling: Sampling) -> None:
    looked = 0
    for seed in range(3):
        prompt = random_prompt(seed, 30)
        plain = run(engine, prompt, sampling=sampling, max_tokens=40, ignore_end=True)
        for use, kind in (("auto", AdaptiveDrafter), ("two-step", SdsatDrafter)):
            engine.adaptive_tokens = use
            drafter = drafter_of(engine)
            assert type(drafter) is kind
            actual = run(
                *(engine, prompt),
                sampling=sampling, drafter=drafter, plan=use == "auto", max_tokens=40,
                ignore_end=True,
            )  # fmt: skip
            assert actual.tokens.tolist() == plain.tokens.tolist(), (seed, use)
            looked += sum(actual.statistics.accepted)
    assert looked > 0


def test_off_means_retrieval_alone(engine: Engine) -> None:
    engine.adaptive_tokens = "off"
    assert type(drafter_of(engine)) is type(default_drafter(engine.tokenizer))


class Told(AdaptiveDrafter):
    """Rows of adaptive tokens say what is right, ``wrong`` of them not."""

    answer: list[int]
    wrong: Callable[[], bool]

    def look(self, tree: DraftTree, stop: int, logits_of: Any) -> None:
        depth, node = 1, stop
        while node >= 0:
            depth, node = depth + 1, int(tree.parents[node])
        following = self.answer[self.written + depth :]

        def told(row: int) -> Any:
            logits = np.zeros_like(logits_of(row))
            position = row - self._rows_after[stop]
            if position < len(following) and not self.wrong():
                logits[following[position]] = 20.0
            return logits

        super().look(tree, stop, told)

    written = 0

    def commit(self, tree: DraftTree, path: list[int], tokens: Any) -> None:
        self.written += len(tokens)
        super().commit(tree, path, tokens)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_right_guesses_save_forwards(engine: Engine, share: float) -> None:
    prompt = random_prompt(5, 24)
    answer = run(engine, prompt, max_tokens=40, ignore_end=True).tokens.tolist()
    alone = run(
        engine, prompt, max_tokens=40, ignore_end=True, drafter=default_drafter(engine.tokenizer)
    )
    drafter = Told(default_drafter(engine.tokenizer), engine.model.adaptive_tokens)
    random = np.random.default_rng(1)
    drafter.answer, drafter.wrong = answer, lambda: bool(random.random() < share)
    actual = run(engine, prompt, max_tokens=40, ignore_end=True, drafter=drafter)
    assert actual.tokens.tolist() == answer
    assert actual.statistics.forwards < 0.8 * alone.statistics.forwards


def paths(tree: DraftTree) -> dict[tuple[int, ...], float]:
    """Chances by the tokens from the root."""
    known: dict[int, tuple[int, ...]] = {-1: ()}
    actual = {}
    for node, (parent, token) in enumerate(zip(tree.parents, tree.tokens, strict=True)):
        known[node] = (*known[int(parent)], int(token))
        actual[known[node]] = float(tree.probabilities[node])
    return actual


@pytest.mark.parametrize("seed", range(30))
def test_a_merged_tree_holds_both_in_decreasing_chance(seed: int) -> None:
    random = np.random.default_rng(seed)
    drafter = AdaptiveDrafter(default_drafter(TOKENIZER), (300, 301))
    branches = [random.integers(0, 3, random.integers(1, 4)) for _ in range(random.integers(0, 5))]
    known = merged([branch.astype(np.int32) for branch in branches], Source.PROMPT)
    chances = np.ones(len(known) + 1)
    for node in range(len(known)):
        chances[node] = chances[known.parents[node]] * random.uniform(0.1, 0.6)
    order = np.argsort(-chances[:-1], kind="stable")
    position = np.append(np.argsort(order), -1)
    known = DraftTree(
        known.tokens[order],
        position[known.parents[order]].astype(np.int32),
        chances[order].astype(np.float32),
        known.sources[order],
    )
    drafter._rows_after = {-1: 0}
    rows = random.normal(0, 3, (2, 20)).astype(np.float32)
    asked = DraftTree.chain(np.array([300, 301], np.int32), Source.ADAPTIVE)
    drafter.look(asked, -1, rows.__getitem__)
    guessed = slow_guesses(rows)
    both, expected = drafter._merged(known), slow_merge(paths(known), guessed)
    actual = paths(both)
    assert set(actual) == set(expected), f"seed {seed}"
    for path, chance in expected.items():
        assert actual[path] == pytest.approx(chance, rel=1e-4), f"seed {seed}"
    assert (np.diff(both.probabilities) <= 1e-7).all()
    assert (both.parents < np.arange(len(both))).all()


def slow_guesses(rows: Any) -> dict[tuple[int, ...], float]:
    """Every path of the likeliest tokens of rows that is likely enough, as many as there may be."""
    chances = np.exp(rows.astype(np.float64))
    chances /= chances.sum(-1, keepdims=True)
    kept = [np.argsort(-row)[:LIKELIEST].tolist() for row in chances]
    actual = {(a,): chances[0][a] for a in kept[0]}
    actual |= {(a, b): chances[0][a] * chances[1][b] for a in kept[0] for b in kept[1]}
    likely = sorted(actual.items(), key=lambda each: -each[1])[:MOST_GUESSES]
    return {path: chance for path, chance in likely if chance >= LEAST_CHANCE}


def slow_merge(
    known: dict[tuple[int, ...], float], guessed: dict[tuple[int, ...], float]
) -> dict[tuple[int, ...], float]:
    """Return retrieval's probability of each node given the one above it, or the guess if that is
    larger."""
    merged = dict(guessed)
    for path in sorted(known, key=len):
        above = known.get(path[:-1], 1.0)
        own = merged.get(path[:-1], 1.0) if len(path) > 1 else 1.0
        merged[path] = max(known[path] / above * own, guessed.get(path, 0.0))
    return merged


def test_a_damaged_file_means_no_adaptive_tokens(tmp_path: Path) -> None:
    path = save(tmp_path, "llama", **WIDE)
    for content in (b"", b"nonsense", b"\xff" * 64):
        adaptive_file(path).write_bytes(content)
        assert open_engine(path).model.adaptive_tokens == ()
    for wrong in (np.zeros((2, 32), np.float32), np.full((2, 64), np.nan, np.float32)):
        save_adaptive_tokens(path, wrong)
        assert open_engine(path).model.adaptive_tokens == ()
