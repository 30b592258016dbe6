"""Biases and penalties against plain decoding that is written down as they are defined."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_models import Oracle, open_engine, random_prompt, run, save

from accel.decoding.engine import Engine
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.execution.forwards import alone
from accel.models.batch import chain_batch
from accel.verification.choosing import choose
from accel.verification.logits_processor import LogitsProcessor
from accel.verification.sampling import Sampling
from accel.verification.verify_tree import Choose, verify_tree
from tests.draft_trees import merged

VOCABULARY = 24


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return open_engine(save(tmp_path_factory.mktemp("model"), "llama"))


def slow_scores(
    logits: NDArray[np.float32], sampling: Sampling, prompt: list[int], text: list[int]
) -> NDArray[np.float32]:
    """Token by token, as the definitions read."""
    whole = prompt + text
    if sampling.last_tokens is not None:
        window = whole[-sampling.last_tokens :] if sampling.last_tokens else []
        repeated, counts = set(window), Counter(window)
    else:
        repeated = set(whole if sampling.penalise_prompt else text)
        counts = Counter(text)
    biases = dict(sampling.logit_bias)
    scores = []
    for token, logit in enumerate(logits):
        score = np.float32(logit)
        if token in biases:
            score = score + np.float32(biases[token])
        if token in repeated:
            penalty = np.float32(sampling.repetition_penalty)
            score = score * penalty if score < 0 else score / penalty
        if token in counts:
            frequency = np.float32(counts[token]) * np.float32(sampling.frequency_penalty)
            score = score - (frequency + np.float32(sampling.presence_penalty))
        scores.append(score)
    return np.array(scores, np.float32)


def random_sampling(rng: random.Random, vocabulary: int) -> Sampling:
    biased = rng.sample(range(vocabulary), rng.randint(0, 5))
    return Sampling(
        temperature=rng.choice([0.0, 0.0, 0.7, 1.3]),
        top_k=rng.choice([0, 0, 5]),
        top_p=rng.choice([1.0, 0.9]),
        repetition_penalty=rng.choice([1.0, 0.8, 1.3, 2.0]),
        penalise_prompt=rng.random() < 0.7,
        presence_penalty=rng.choice([0.0, 0.0, -0.7, 1.5]),
        frequency_penalty=rng.choice([0.0, 0.0, -0.4, 0.6, 2.0]),
        last_tokens=rng.choice([None, None, 0, 1, 4, 64]),
        logit_bias=tuple((token, rng.choice([-math.inf, -100.0, -1.5, 2.0])) for token in biased),
        seed=rng.randrange(1 << 62),
    )


def random_tree(rng: random.Random, likely: list[int]) -> DraftTree:
    """Branches that spell some of what may come, with many wrong ones beside."""
    branches = []
    for _ in range(rng.randint(0, 5)):
        known = likely[: rng.randint(0, 6)]
        more = [rng.randrange(VOCABULARY) for _ in range(rng.randint(0, 3))]
        branches.append(np.array(known + more, np.int32))
    return merged([branch for branch in branches if len(branch)], Source.PROMPT)


@dataclass
class TableModel:
    """A model whose logits depend on the last two tokens. table: float32 [V, V, V]."""

    table: NDArray[np.float32]
    sampling: Sampling
    prompt: list[int]

    def logits(self, text: list[int]) -> NDArray[np.float32]:
        before, last = [*self.prompt, *text][-2:]
        row: NDArray[np.float32] = self.table[before, last]
        return row

    def plain(self, count: int) -> list[int]:
        """Plain decoding, one token at a time."""
        text: list[int] = []
        for position in range(count):
            scores = slow_scores(self.logits(text), self.sampling, self.prompt, text)
            text.append(choose(scores, self.sampling, position))
        return text

    def choosing(self, processor: LogitsProcessor, text: list[int]) -> Choose:
        """Return the verifier's question at the nodes of a tree after ``text``."""

        def chosen(_node: int, above: list[int]) -> int:
            logits = self.logits(text + above)
            before = logits.copy()
            scores = processor.scores(logits, text, above)
            assert np.array_equal(logits, before)
            return choose(scores, self.sampling, len(text) + len(above))

        return chosen


def test_the_walk_of_random_trees_is_plain_decoding() -> None:
    """Trees with the right branches, wrong ones, and both."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rng, made = random.Random(seed), np.random.default_rng(seed)
    table = made.normal(0, 2, (VOCABULARY, VOCABULARY, VOCABULARY)).astype(np.float32)
    accepted = 0
    for _ in range(150):
        prompt = [rng.randrange(VOCABULARY) for _ in range(rng.randint(2, 12))]
        model = TableModel(table, random_sampling(rng, VOCABULARY), prompt)
        plain = model.plain(20)
        processor = LogitsProcessor(model.sampling, np.array(prompt, np.int32))
        text: list[int] = []
        while len(text) < 20:
            tree = random_tree(rng, plain[len(text) :])
            path, tokens = verify_tree(tree, model.choosing(processor, text))
            accepted += len(path)
            text = text + tokens
        assert text[:20] == plain, model.sampling
    assert accepted > 300


SAMPLINGS = [
    Sampling(presence_penalty=1.5),
    Sampling(frequency_penalty=0.8),
    Sampling(frequency_penalty=-0.5),
    Sampling(repetition_penalty=1.4, last_tokens=64),
    Sampling(repetition_penalty=1.4, last_tokens=3),
    Sampling(repetition_penalty=3.0, last_tokens=0),
    Sampling(repetition_penalty=1.3, presence_penalty=0.5, frequency_penalty=0.3),
    Sampling(presence_penalty=0.9, last_tokens=10),
    Sampling(logit_bias=((5, 3.0), (70, -math.inf), (101, -100.0))),
    Sampling(temperature=0.8, seed=7, presence_penalty=1.1),
    Sampling(temperature=1.2, top_p=0.9, seed=8, frequency_penalty=0.9),
    Sampling(temperature=1.0, top_k=12, seed=9, logit_bias=((40, 4.0), (41, -2.0))),
    Sampling(temperature=0.9, seed=10, repetition_penalty=1.5, last_tokens=16),
]


def slow_text(engine: Engine, prompt: TokenArray, sampling: Sampling, count: int) -> list[int]:
    """One token at a time, each by a forward of a cache of its own."""
    text: list[int] = []
    for position in range(count):
        tokens = np.array([*prompt.tolist(), *text], np.int32)
        batch = chain_batch(tokens, len(tokens) - 1, wants_numbers=True)
        logits = alone(engine.forward_steps(batch, engine.session())).row(0)
        scores = slow_scores(logits.copy(), sampling, prompt.tolist(), text)
        text.append(choose(scores, sampling, position))
    return text


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
def test_texts_of_a_model_are_plain_decodings(engine: Engine, sampling: Sampling) -> None:
    accepted = 0
    for seed in range(3):
        prompt = random_prompt(6000 + seed, 12)
        expected = slow_text(engine, prompt, sampling, 20)
        without = run(engine, prompt, max_tokens=20, sampling=sampling, ignore_end=True)
        assert without.tokens.tolist() == expected
        for tree_seed in range(2):
            oracle = Oracle(np.array(expected, np.int32), tree_seed)
            drafted = run(
                engine,
                prompt,
                max_tokens=20,
                sampling=sampling,
                drafter=oracle,
                ignore_end=True,
                plan=False,
            )
            assert drafted.tokens.tolist() == expected, f"seed {seed}, tree {tree_seed}"
            accepted += sum(drafted.statistics.accepted)
    assert accepted > 20


def test_a_penalty_changes_what_is_written(engine: Engine) -> None:
    """Otherwise the tests above would say nothing. The random model repeats few tokens: the prompt
    is one after which it repeats enough for each penalty."""
    prompt = random_prompt(6012, 12)
    texts = [
        run(engine, prompt, max_tokens=20, sampling=sampling, ignore_end=True).tokens.tolist()
        for sampling in [Sampling(), *SAMPLINGS[:6]]
    ]
    assert all(text != texts[0] for text in texts[1:6])
    assert texts[6] == texts[0], "a window of no tokens"


def test_what_is_never_chosen_is_not_written(engine: Engine) -> None:
    prompt = random_prompt(6001, 12)
    for temperature in (0.0, 1.0):
        free = run(engine, prompt, max_tokens=20, sampling=Sampling(temperature, seed=1))
        banned = tuple((int(token), -math.inf) for token in set(free.tokens.tolist()))
        sampling = Sampling(temperature, seed=1, logit_bias=banned)
        oracle = Oracle(free.tokens, 0)
        held = run(engine, prompt, max_tokens=20, sampling=sampling, drafter=oracle)
        assert not set(held.tokens.tolist()) & set(free.tokens.tolist())
