"""Best-first expansion of weighted rows against its obvious form."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from accel.draft_tree import DraftTree
from accel.sources.expansion import expand


def slow_expand(rows, weights, sources, max_nodes, escape, max_children, min_probability):
    """The rule in its plainest form: a heap of paths and the rows that spell them."""
    tree, heap, added = [], [], 0

    def offer(parent, indices, depth, probability):
        nonlocal added
        if depth == rows.shape[1]:
            return
        voters: dict[int, list[int]] = {}
        for index in indices:
            if rows[index, depth] >= 0:
                voters.setdefault(int(rows[index, depth]), []).append(index)
        total = sum(weights[index] for group in voters.values() for index in group)
        votes = {token: sum(weights[i] for i in group) for token, group in voters.items()}
        best = sorted(voters, key=lambda token: -votes[token])[:max_children]
        for token in best:
            chance = probability * votes[token] / (total + escape)
            if chance < min_probability:
                break
            heapq.heappush(heap, (-chance, added, parent, token, depth + 1, voters[token]))
            added += 1

    offer(-1, list(range(len(rows))), 0, 1.0)
    while heap and len(tree) < max_nodes:
        chance, _, parent, token, depth, indices = heapq.heappop(heap)
        strongest = max(weights[i] for i in indices)
        source = {sources[i] for i in indices if weights[i] == strongest}
        tree.append((token, parent, -chance, source))
        offer(len(tree) - 1, indices, depth, -chance)
    return tree


def random_rows(random, count, depth, vocabulary):
    rows = random.integers(0, vocabulary, (count, depth)).astype(np.int32)
    for row in range(count):
        if random.random() < 0.5:  # share a beginning with an earlier row
            other, keep = random.integers(0, row + 1), random.integers(0, depth + 1)
            rows[row, :keep] = rows[other, :keep]
        if random.random() < 0.3:  # a file ends here
            rows[row, random.integers(0, depth + 1) :] = -1
    # Sums of such weights are exact, whatever their order.
    return rows, random.integers(1, 64, count) / 16.0, random.integers(1, 9, count).astype(np.int8)


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_slow_form(seed):
    random = np.random.default_rng(seed)
    count, depth = int(random.integers(1, 80)), int(random.integers(1, 12))
    rows, weights, sources = random_rows(random, count, depth, int(random.integers(2, 30)))
    max_nodes, max_children = int(random.integers(1, 90)), int(random.integers(1, 9))
    escape, minimum = float(random.integers(0, 5)), float(random.choice([0.0, 0.02]))
    tree = expand(
        rows,
        weights,
        sources,
        max_nodes=max_nodes,
        escape=escape,
        max_children=max_children,
        min_probability=minimum,
    )
    slow = slow_expand(rows, weights, sources, max_nodes, escape, max_children, minimum)
    assert len(tree) == len(slow)
    assert np.allclose(tree.probabilities, [node[2] for node in slow])
    # Equal probabilities may be taken in another order: compare the trees as sets of paths.
    if len(slow) < max_nodes or len(set(tree.probabilities.tolist())) == len(tree):
        assert _paths(tree) == _paths(
            DraftTree(
                np.array([node[0] for node in slow], np.int32),
                np.array([node[1] for node in slow], np.int32),
                np.array([node[2] for node in slow], np.float32),
                np.zeros(len(slow), np.int8),
            )
        )
        for node, expected in zip(sorted(_named(tree)), sorted(_slow_named(slow)), strict=True):
            assert node[0] == expected[0]
            assert node[1] in expected[1]


def _spelled(tokens, parents):
    spelled: list[tuple[int, ...]] = []
    for token, parent in zip(tokens, parents, strict=True):
        spelled.append((*(spelled[parent] if parent >= 0 else ()), int(token)))
    return spelled


def _paths(tree):
    return set(_spelled(tree.tokens, tree.parents))


def _named(tree):
    return list(zip(_spelled(tree.tokens, tree.parents), tree.sources.tolist(), strict=True))


def _slow_named(slow):
    spelled = _spelled([node[0] for node in slow], [node[1] for node in slow])
    return [(path, node[3]) for path, node in zip(spelled, slow, strict=True)]


def test_order_is_parents_first_and_decreasing_probability():
    random = np.random.default_rng(7)
    rows, weights, sources = random_rows(random, 200, 16, 9)
    tree = expand(rows, weights, sources, max_nodes=64)
    assert len(tree) == 64
    assert (tree.parents < np.arange(64)).all()
    assert (np.diff(tree.probabilities) <= 0).all()


def test_nothing_known_is_an_empty_tree():
    empty = np.empty((0, 8), np.int32)
    assert len(expand(empty, np.empty(0), np.empty(0, np.int8), max_nodes=8)) == 0
    ended = np.full((3, 8), -1, np.int32)
    assert len(expand(ended, np.ones(3), np.zeros(3, np.int8), max_nodes=8)) == 0
