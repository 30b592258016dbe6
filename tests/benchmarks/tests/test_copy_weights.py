"""Fitting the weights of places to copy from."""

from __future__ import annotations

import math
import random
import subprocess

import numpy as np
import pytest
import torch
from seeds import for_each_seed
from small_model import SMALL_MODEL

from accel.drafting.copy import candidates as rows_of
from accel.drafting.copy.drafter import CopyDrafter
from accel.text.tokenizer import Tokenizer
from tests.benchmarks.training.copy_votes import votes_of
from tests.benchmarks.training.copy_weights import (
    LongestSuffix,
    Pair,
    Votes,
    collect,
    fit,
    history_pairs,
    log_likelihood,
)
from tests.benchmarks.training.errors import TrainingError

BEFORE = "def area(shape):\n    width = shape.width\n    return width * shape.height\n" * 4
PAIRS = [
    Pair("rename", BEFORE, BEFORE.replace("shape", "box")),
    Pair("drop", BEFORE, BEFORE.replace("    width = shape.width\n", "")),
]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_folder(SMALL_MODEL)


@pytest.fixture(scope="module")
def votes(tokenizer):
    return collect(CopyDrafter(tokenizer), tokenizer, PAIRS, None, random.Random(0))


def test_the_likelihood_is_that_of_the_plainest_form(votes):
    weights = torch.as_tensor(np.random.default_rng(0).normal(0, 1, rows_of.WEIGHTS))
    weights[rows_of.NOTHING_AT] = 0
    fast = log_likelihood(weights, votes).tolist()
    for choice, value in enumerate(fast):
        mine = (votes.choice == choice).nonzero()[:, 0].tolist()
        strengths = [math.exp(float(weights[votes.features[row]].sum())) for row in mine]
        right = [s for s, row in zip(strengths, mine, strict=True) if votes.right[row]]
        escape = math.exp(float(weights[votes.escapes[choice]]))
        found = sum(right) if right else escape
        assert value == pytest.approx(math.log(found / (sum(strengths) + escape)), rel=1e-6)


def test_fitting_raises_the_likelihood_and_leaves_the_rest_alone(votes):
    def mean(weights: np.ndarray) -> float:
        value = log_likelihood(torch.as_tensor(weights), votes) * votes.weights
        return float(value.sum() / votes.weights.sum())

    nothing = np.zeros(rows_of.WEIGHTS)
    fitted = fit(votes, 20)
    assert mean(fitted) > mean(nothing) + 0.5
    only = slice(0, 12)
    partly = fit(votes, 20, start=nothing, only=only)
    assert partly[only].any()
    assert not partly[12:].any()
    assert mean(nothing) < mean(partly) < mean(fitted)


def test_votes_are_those_of_the_tree(tokenizer):
    drafter = CopyDrafter(tokenizer)
    data = collect(drafter, tokenizer, PAIRS[:1], None, random.Random(0))
    assert isinstance(data, Votes)
    features, tokens, escape, _ = votes_of(drafter)
    chances: dict[int, float] = {}
    for row, token in zip(features, tokens.tolist(), strict=True):
        vote = math.exp(drafter.weights[row].sum())
        chances[token] = chances.get(token, 0.0) + vote
    total = sum(chances.values()) + math.exp(drafter.weights[escape])
    tree = drafter.draft(64)
    for node in np.flatnonzero(tree.parents == -1):
        expected = chances[int(tree.tokens[node])] / total
        assert tree.probabilities[node] == pytest.approx(expected, rel=0.02)


@for_each_seed(range(10))
def test_the_longest_suffix_is_found(seed):
    draw = np.random.default_rng(seed)
    files = [draw.integers(0, 4, 40).astype(np.int32) for _ in range(5)]
    context = draw.integers(0, 4, 12).astype(np.int32)
    found = LongestSuffix(files).lookup(context, limit=8, depth=4)

    def length_at(file: np.ndarray, end: int) -> int:
        length = 0
        while length < min(end + 1, 12) and file[end - length] == context[-1 - length]:
            length += 1
        return length

    lengths = sorted((length_at(f, end) for f in files for end in range(40)), reverse=True)
    assert found.lengths.tolist() == lengths[:8], f"seed {seed}"


def test_a_history_gives_the_edits_of_its_commits(tmp_path):
    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    for number, text in enumerate((BEFORE, BEFORE.replace("shape", "box"))):
        (tmp_path / "shapes.py").write_text(text)
        git("add", "shapes.py")
        git("commit", "-q", "-m", f"commit {number}")
    found = list(history_pairs(tmp_path, 5, random.Random(0)))
    assert found == [Pair("commit 1", BEFORE, BEFORE.replace("shape", "box"))]
    with pytest.raises(TrainingError, match="no git repository"):
        list(history_pairs(tmp_path / "nowhere", 5, random.Random(0)))
