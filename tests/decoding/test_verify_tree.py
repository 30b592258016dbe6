"""The walk along a draft tree."""

from __future__ import annotations

import numpy as np
import pytest

from accel.draft_tree import DraftTree, Source
from accel.planning.acceptance_rate import expected_hits
from accel.verification.choosing import entropy_tokens
from accel.verification.verify_tree import verify_tree
from tests.draft_trees import accepted_path, merged


def tree_of(*branches: list[int], source: Source = Source.PROMPT) -> DraftTree:
    return merged([np.array(branch, np.int32) for branch in branches], source)


def spelling(text: list[int]):  # type: ignore[no-untyped-def]
    return lambda _node, above: text[len(above)]


def test_the_walk_equals_the_longest_spelt_path_on_random_trees() -> None:
    random = np.random.default_rng(2)
    for _ in range(3000):
        branches = [
            random.integers(0, 3, random.integers(1, 6)).astype(np.int32)
            for _ in range(random.integers(0, 8))
        ]
        tree = merged(branches, Source.PROMPT)
        text = random.integers(0, 3, 8).astype(np.int32)
        path, tokens = verify_tree(tree, spelling(text.tolist()))
        assert path == accepted_path(tree, text)
        assert tokens == text[: len(path) + 1].tolist()


def test_without_nodes_one_token_comes() -> None:
    assert verify_tree(DraftTree.empty(), spelling([7])) == ([], [7])


def test_siblings_with_the_same_token_do_no_harm() -> None:
    tree = tree_of([1], [2])
    tree.tokens[1] = 1
    assert verify_tree(tree, spelling([1, 5])) == ([0], [1, 5])


def test_entropy_decides_how_many_tokens_are_good_enough() -> None:
    """Hand-computed: entropy 0 gives one, equal thirds give all three, in between it rounds up."""
    certain = np.array([50.0, 0.0, 0.0, 0.0], np.float32)
    assert entropy_tokens(certain, 3) == [0]
    equal = np.array([1.0, 1.0, 1.0, -20.0], np.float32)
    assert entropy_tokens(equal, 3) == [0, 1, 2]
    chances = np.array([0.8, 0.15, 0.05], np.float32)
    normalised = -(chances * np.log(chances)).sum() / np.log(3)
    assert 1 < 3 * normalised < 2
    assert entropy_tokens(np.log(chances), 3) == [0, 1]


def test_relaxed_acceptance_takes_good_children_of_a_draft_model_only() -> None:
    def relaxed(_node: int) -> list[int]:
        return [9, 4]

    own = tree_of([4, 5], source=Source.DRAFT_MODEL)
    assert verify_tree(own, spelling([9, 5, 1]), relaxed) == ([0, 1], [4, 5, 1])
    assert verify_tree(own, spelling([9, 5, 1])) == ([], [9])
    other = tree_of([4, 5], source=Source.REPOSITORY)
    assert verify_tree(other, spelling([9, 5, 1]), relaxed) == ([], [9])
    bad = tree_of([6], source=Source.DRAFT_MODEL)
    assert verify_tree(bad, spelling([9, 1]), relaxed) == ([], [9])
    both = tree_of([4], [9], source=Source.DRAFT_MODEL)
    assert verify_tree(both, spelling([9, 1]), relaxed) == ([1], [9, 1])


def test_the_main_branch_follows_the_likeliest_children() -> None:
    tree = tree_of([1, 2], [3, 4, 5])
    tree.probabilities[:] = [0.2, 0.1, 0.6, 0.5, 0.4]
    branch = tree.main_branch()
    assert branch.tokens.tolist() == [3, 4, 5]
    assert branch.parents.tolist() == [-1, 0, 1]
    np.testing.assert_allclose(branch.probabilities, [0.6, 0.5, 0.4])
    assert len(DraftTree.empty().main_branch()) == 0


def test_expected_hits_are_those_of_the_visited_nodes() -> None:
    chain = DraftTree.chain(np.arange(40, dtype=np.int32), Source.PROMPT, 0.9)
    assert expected_hits(chain, []) == pytest.approx(0.9)
    assert expected_hits(chain, [0, 1]) == pytest.approx(2.7)
    assert expected_hits(chain, list(range(40))) == pytest.approx(36)
    fork = DraftTree(
        np.array([1, 2, 3], np.int32),
        np.array([-1, -1, 1], np.int32),
        np.array([0.5, 0.3, 0.15], np.float32),
        np.zeros(3, np.int8),
    )
    assert expected_hits(fork, []) == pytest.approx(0.8)
    assert expected_hits(fork, [1]) == pytest.approx(0.8 + 0.5)
    assert expected_hits(fork, [0]) == pytest.approx(0.8)
    assert expected_hits(DraftTree.empty(), []) == 0
