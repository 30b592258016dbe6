"""The compiled walk of greedy decoding gives what the slow walk gives."""

from __future__ import annotations

import numpy as np
import pytest

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.greedy import GreedyWalk
from accel.sampling import Sampling, choose
from accel.verifier import expected_hits, walk


def random_tree(random: np.random.Generator, nodes: int, vocabulary: int) -> DraftTree:
    tokens = random.integers(0, vocabulary, nodes).astype(np.int32)
    parents = np.array([random.integers(-1, node) for node in range(nodes)], np.int32)
    chances = random.random(nodes).astype(np.float32)
    return DraftTree(tokens, parents, chances, np.full(nodes, Source.PROMPT, np.int8))


@pytest.mark.parametrize("penalty", [1.0, 1.3, 0.7])
@pytest.mark.parametrize("vocabulary", [3, 200])
def test_walks_as_the_slow_walk_does(penalty: float, vocabulary: int) -> None:
    seed = int(np.random.default_rng().integers(2**31))
    random = np.random.default_rng(seed)
    for _ in range(150):
        text: TokenArray = random.integers(0, vocabulary, random.integers(0, 4)).astype(np.int32)
        compiled = GreedyWalk(vocabulary, penalty, text)
        history = text.tolist()
        for _ in range(3):
            tree = random_tree(random, int(random.integers(0, 20)), vocabulary)
            # Few values, so that equal scores are common.
            logits = random.integers(-2, 3, (len(tree) + 1, vocabulary)).astype(np.float32)

            def likeliest(
                node: int,
                above: list[int],
                logits: np.ndarray = logits,
                history: list[int] = history,
            ) -> int:
                seen = np.array([*history, *above], np.int32)
                return choose(logits[node + 1], Sampling(repetition_penalty=penalty), seen, 0)

            expected = walk(tree, likeliest)
            assert compiled(tree, logits) == expected, f"seed {seed}"
            history.extend(expected[1])


def test_tokens_that_came_otherwise_are_seen_too() -> None:
    walked = GreedyWalk(3, 2.0, np.empty(0, np.int32))
    logits = np.array([[1.0, 3.0, 2.0]], np.float32)
    walked.note([1])
    assert walked(DraftTree.empty(), logits) == ([], [2])


def test_rows_of_which_all_is_excluded() -> None:
    logits = np.full((1, 130), -np.inf, np.float32)
    assert GreedyWalk(130, 1.0, np.empty(0, np.int32))(DraftTree.empty(), logits) == ([], [0])
    logits[0, 129] = -3e38
    assert GreedyWalk(130, 1.0, np.empty(0, np.int32))(DraftTree.empty(), logits) == ([], [129])


def test_expected_hits_add_up_children_of_what_was_visited() -> None:
    seed = int(np.random.default_rng().integers(2**31))
    random = np.random.default_rng(seed)
    for _ in range(50):
        tree = random_tree(random, 12, 5)
        path: list[int] = []
        while (children := np.flatnonzero(tree.parents == (path[-1] if path else -1))).size:
            path.append(int(random.choice(children)))
        slow = 0.0
        for node in [-1, *path]:
            reach = tree.probabilities[node] if node >= 0 else 1.0
            slow += min(float(tree.probabilities[tree.parents == node].sum() / reach), 1.0)
        assert expected_hits(tree, path) == pytest.approx(slow, rel=1e-5), f"seed {seed}"
