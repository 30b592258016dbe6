"""Planned growth from retrieval and mask rows, against the tree that knows no prices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from accel.mask_tokens import MaskTokens
from accel.sources.adaptive_mixture import AdaptiveMixture
from accel.sources.guesses import Group
from accel.sources.joint_tree import joint_tree
from accel.sources.mixture import MixtureDrafter
from accel.sources.pooling import POOLING
from accel.sources.protocol import DraftRequest, Prices
from accel.sources.sampler import SHORTLIST, Tables, likeliest_of

VOCABULARY, WIDTH, MASKS = 40, 32, 3


def mask_tokens(random: np.random.Generator) -> MaskTokens:
    """Of random weights that bf16 holds."""
    weights = {
        f"sampler.{name}": torch.from_numpy(random.normal(0, 0.3, (WIDTH, WIDTH)))
        for name in ("state", "token", "memory", "out")
    }
    weights["embeddings"] = torch.zeros(MASKS, WIDTH)
    weights = {name: each.bfloat16().float() for name, each in weights.items()}
    table = torch.from_numpy(random.normal(0, 0.4, (VOCABULARY, WIDTH))).bfloat16().float()
    return MaskTokens(weights, table, table)


def group_of(masks: MaskTokens, random: np.random.Generator) -> Group:
    states = torch.from_numpy(random.normal(0, 1, (MASKS, WIDTH))).bfloat16().float().numpy()
    head = masks.head_of(np.arange(VOCABULARY, dtype=np.int32))
    return Group(states @ head.T, states, int(random.integers(VOCABULARY)))


def pair_of(masks: MaskTokens, prompt: np.ndarray) -> tuple[AdaptiveMixture, MixtureDrafter]:
    """The drafter, and retrieval alone on the same text."""
    other = MixtureDrafter()
    drafter = AdaptiveMixture(masks.count, MixtureDrafter(), Tables.of(masks))
    for each in (drafter, other):
        each.begin(DraftRequest(prompt))
        each.draft(1)
    return drafter, other


@pytest.mark.parametrize("seed", range(6))
def test_trees_are_those_of_the_joint_tree(seed: int) -> None:
    """Where nodes cost nothing. A memory is rounded to bf16 before it is multiplied."""
    random = np.random.default_rng(seed)
    masks = mask_tokens(random)
    prompt = random.integers(0, VOCABULARY, 70).astype(np.int32)
    drafter, other = pair_of(masks, prompt)
    group = group_of(masks, random)
    drafter.guess(*group)
    found = drafter.draft(12)
    noted = drafter._noted
    listed = noted.tokens[: noted.counts[1]].copy()
    assert set(group.logits[0].argsort()[-SHORTLIST:]) <= set(listed.tolist())
    assert masks.sampler is not None
    head = masks.head_of(listed)
    wanted = joint_tree(other, group, masks.sampler, listed, head, POOLING, 12)
    np.testing.assert_allclose(found.probabilities, wanted.tree.probabilities, rtol=0.06)
    assert found.tokens[:3].tolist() == wanted.tree.tokens[:3].tolist()
    tree = drafter._retrieval._tree
    rows = np.sort(tree.probabilities[:12]), np.sort(wanted.known.probabilities)
    np.testing.assert_allclose(*rows, rtol=0.06)


@pytest.mark.parametrize("seed", range(6))
def test_without_mask_rows_trees_are_those_of_retrieval(seed: int) -> None:
    random = np.random.default_rng(seed)
    masks = mask_tokens(random)
    prompt = random.integers(0, 12, 90).astype(np.int32)
    drafter, other = pair_of(masks, prompt)
    seconds = 1.0 + 0.1 * np.arange(40)
    prices = Prices(seconds, np.full(40, 0.1), 1.0)
    found, wanted = drafter.draft_within(30, prices), other.draft_within(30, prices)
    assert found.tokens.tolist() == wanted.tokens.tolist()
    assert found.probabilities.tolist() == wanted.probabilities.tolist()
    assert drafter.saved_s == pytest.approx(other.saved_s)
    assert drafter.groups(found).rows == 0


def test_mask_rows_hang_where_they_pay() -> None:
    random = np.random.default_rng(1)
    masks = mask_tokens(random)
    drafter, _ = pair_of(masks, random.integers(0, VOCABULARY, 50).astype(np.int32))
    slopes = np.full(40, 0.01)
    cheap = Prices(1.0 + 0.01 * np.arange(40), slopes, 1.0, masks=True)
    tree = drafter.draft_within(20, cheap)
    assert drafter.groups(tree).rows > 0
    assert drafter.saved_s > 0
    dear = Prices(1.0 + 1.0 * np.arange(40), 100 * slopes, 1.0, masks=True)
    tree = drafter.draft_within(20, dear)
    assert drafter.groups(tree).rows == 0


def test_what_mask_rows_said_holds_for_one_tree() -> None:
    random = np.random.default_rng(2)
    masks = mask_tokens(random)
    drafter, other = pair_of(masks, random.integers(0, VOCABULARY, 50).astype(np.int32))
    drafter.guess(*group_of(masks, random))
    empty = drafter.draft(0)
    drafter.commit(empty, [], np.array([7], np.int32))
    other.commit(empty, [], np.array([7], np.int32))
    guessed = drafter.draft(8)
    alone = other.draft(8)
    assert guessed.probabilities.tolist() != alone.probabilities.tolist()
    drafter.commit(guessed, [], np.array([5], np.int32))
    drafter._retrieval.calibration.corrections[:] = other.calibration.corrections
    other.commit(empty, [], np.array([5], np.int32))
    assert drafter.draft(8).probabilities.tolist() == other.draft(8).probabilities.tolist()


@pytest.mark.parametrize("size", [16, 40, 64, 130, 500])
def test_the_highest_scores_are_found(size: int) -> None:
    random = np.random.default_rng(size)
    scores = random.normal(size=(3, size)).astype(np.float32)
    found, values = np.empty(SHORTLIST, np.int32), np.empty(SHORTLIST, np.float32)
    for row in range(3):
        likeliest_of(scores, row, found, values)
        assert set(found) == set(np.argsort(-scores[row])[:SHORTLIST])
