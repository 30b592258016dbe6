"""Learning the acceptance model: slopes against differences, and that it learns."""

from __future__ import annotations

import numpy as np
import pytest

from accel.drafting.base import DraftRequest
from accel.drafting.retrieval.acceptance_model import NODE_INPUTS, AcceptanceWeights
from accel.drafting.retrieval.drafter import RetrievalDrafter
from accel.drafting.retrieval.token_classes import TokenShapes
from tests.benchmarks.training.acceptance import bodies_of
from tests.benchmarks.training.acceptance_fit import Examples, _learn_from, fit, observe
from tests.benchmarks.training.acceptance_inputs import random_weights

SPELLING = [f"{mark}w{i}".encode() for i in range(20) for mark in (" ", "(")]


@pytest.fixture(scope="module")
def examples():
    """Nodes of replays on texts in which what stood before often returns."""
    random = np.random.default_rng(0)
    phrase = random.integers(0, 40, 30)
    texts = []
    for _ in range(12):
        text = np.concatenate([phrase, random.integers(0, 40, 10), phrase[5:25]]).astype(np.int32)
        texts.append((DraftRequest(text[:36]), text[36:]))
    room = Examples.allocate(150, 150 * 80, 150 * 80 * 10)
    drafter = RetrievalDrafter(TokenShapes.of(SPELLING), weights=random_weights(1))
    return room, observe(drafter, texts, 16, room)


def test_examples_name_the_right_candidate(examples):
    room, count = examples
    assert count > 50
    sizes = np.diff(room.firsts[: count + 1])
    assert (room.labels[:count] < sizes).all()
    assert (room.labels[:count] >= 0).mean() > 0.5
    assert room.nodes.shape[1] == NODE_INPUTS


def test_slopes_equal_differences(examples):
    room, count = examples
    weights, marginal = random_weights(2), random_weights(3)
    for part in marginal:
        part.fill(0)
    chosen = np.arange(min(count, 20))
    _learn_from(room, chosen, weights, marginal)
    random = np.random.default_rng(4)
    ignored = AcceptanceWeights(*(np.zeros_like(part) for part in weights))
    for name in AcceptanceWeights._fields:
        part, marginal_cost = getattr(weights, name), getattr(marginal, name)
        direction = random.standard_normal(part.shape).astype(np.float32)
        step = 2e-3
        part += step * direction
        above = _learn_from(room, chosen, weights, ignored)
        part -= 2 * step * direction
        below = _learn_from(room, chosen, weights, ignored)
        part += step * direction
        expected = (above - below) / (2 * step)
        assert np.isclose((marginal_cost * direction).sum(), expected, rtol=0.05, atol=0.05), name


def loss_of(weights: AcceptanceWeights, examples: Examples, count: int) -> float:
    """Loss in nats per node over the first ``count`` examples."""
    marginal = AcceptanceWeights(*(np.zeros_like(part) for part in weights))
    return _learn_from(examples, np.arange(count), weights, marginal) / max(count, 1)


def test_fitting_lowers_the_loss(examples):
    room, count = examples
    weights = random_weights(5)
    before = loss_of(weights, room, count)
    fit(weights, room, count, epochs=20, rate=1e-2)
    assert loss_of(weights, room, count) < 0.6 * before


def test_answers_are_bodies_behind_their_docstrings():
    text = (
        'import os\n\ndef f(x):\n    """Doc."""\n    a = x\n    b = a\n    return b\n\n'
        "def short(): return 1\n"
    )
    (body,) = bodies_of("m.py", text)
    assert body.answer == "    a = x\n    b = a\n    return b\n"
    assert body.before.endswith('"""Doc."""\n')
    assert body.before + body.answer + body.after == text
    assert list(bodies_of("m.py", "def broken(:\n")) == []
