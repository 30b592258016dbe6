"""The compiled row layout equals the plain form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tiny_models import shuffled

from accel.draft_tree import DraftTree, Source
from accel.models.batch import BLOCKED, chain_batch, tree_batch
from tests.draft_trees import depths_of, merged


def ancestor_mask(tree: DraftTree) -> NDArray[np.bool_]:
    """bool [n, n]: row i attends column j when j is i or an ancestor of i."""
    mask = np.zeros((len(tree), len(tree)), np.bool_)
    for node, parent in enumerate(tree.parents):
        if parent >= 0:
            mask[node] = mask[parent]
        mask[node, node] = True
    return mask


def test_layout_equals_the_obvious_one_on_random_trees() -> None:
    random = np.random.default_rng(6)
    for _ in range(300):
        branches = [
            random.integers(0, 5, random.integers(1, 7)).astype(np.int32)
            for _ in range(random.integers(0, 9))
        ]
        tree = shuffled(merged(branches, Source.PROMPT), random)
        pending = random.integers(0, 9, random.integers(1, 5)).astype(np.int32)
        padding = int(random.integers(0, 4))
        rows = tree_batch(pending, tree, padding)
        first, nodes = len(pending), len(tree)
        count = first + nodes
        assert rows.logits_from == first - 1
        assert rows.tokens[:count].tolist() == [*pending.tolist(), *tree.tokens.tolist()]
        assert rows.offsets[:first].tolist() == list(range(first))
        assert rows.offsets[first:count].tolist() == (depths_of(tree) + first - 1).tolist()
        expected = np.zeros((count + padding, count + padding), bool)
        expected[:first, :first] = np.tril(np.ones((first, first), bool))
        expected[first:count, :first] = True
        expected[first:count, first:count] = ancestor_mask(tree)
        expected[range(count, count + padding), range(count, count + padding)] = True
        assert np.array_equal(rows.mask == 0, expected)
        expected_parents = [*range(-1, first - 1), *(tree.parents + first).tolist()]
        assert rows.parents.tolist() == [*expected_parents, *[-1] * padding]
        assert rows.meant == count
        assert set(np.unique(rows.mask)) <= {np.float32(0), BLOCKED}


def test_a_chain_attends_what_is_before() -> None:
    rows = chain_batch(np.array([4, 5, 6], np.int32), 3)
    assert np.array_equal(rows.mask == 0, np.tril(np.ones((3, 3), bool)))
