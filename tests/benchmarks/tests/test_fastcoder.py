"""FastCoder's rule against obvious, slow forms of its parts and of the whole."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from brute_index import BruteIndex
from seeds import for_each_seed

from accel.draft_tree import DraftTree, Source
from accel.drafting.base import DraftRequest
from tests.benchmarks.published.fastcoder import FastCoderDrafter, FastCoderParameters
from tests.benchmarks.published.fastcoder_cache import SequenceCache
from tests.benchmarks.published.fastcoder_trie import Trie
from tests.draft_trees import accepted_path, merged

Path = tuple[int, ...]


def paths(tree: DraftTree) -> list[Path]:
    """The path to every node, in the order of the nodes."""
    found: list[Path] = []
    for token, parent in zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True):
        found.append((*(found[parent] if parent >= 0 else ()), token))
    return found


def array(*tokens: int) -> np.ndarray:
    return np.array(tokens, np.int32)


def slow_search(sequences: list[list[int]], context: list[int], longest: int, shortest: int):
    """FastCoder's cache: nested loops over lengths, sequences and places."""
    for length in range(min(longest, len(context)), shortest - 1, -1):
        found = []
        for sequence in sequences:
            for end in range(length, len(sequence)):
                if sequence[end - length : end] == context[-length:]:
                    found.append(sequence[end:])
        if found:
            return found
    return []


def slow_tree(rows: list[list[int]], weights: list[float], choices: int) -> set[Path]:
    """Heaviest prefixes by a counter, REST's cut, and all prefixes of what is left."""
    counter: Counter[Path] = Counter()
    for row, weight in zip(rows, weights, strict=True):
        for end in range(1, len(row) + 1):
            counter[tuple(row[:end])] += weight
    # Of equal weight the one counted first, which is a Counter's own order.
    kept = [path for path, _ in counter.most_common(choices)]
    total = sum(len(set(path)) for path in kept)
    for path in sorted(kept, key=lambda path: (len(set(path)), kept.index(path)), reverse=True):
        if total <= choices:
            break
        total -= len(set(path))
        kept.remove(path)
    return {path[:end] for path in kept for end in range(1, len(path) + 1)}


@for_each_seed(range(200))
def test_cache_search_equals_nested_loops(seed: int) -> None:
    chance = random.Random(seed)
    cache = SequenceCache(activation_size=1)
    sequences = []
    for _ in range(chance.randint(0, 12)):
        sequences.append([chance.randrange(4) for _ in range(chance.randint(0, 30))])
        cache.add(array(*sequences[-1]))
    context = [chance.randrange(4) for _ in range(chance.randint(1, 20))]
    longest, shortest = chance.randint(2, 16), 2
    found = cache.search(array(*context), longest, shortest)
    expected = slow_search(sequences, context, longest, shortest)
    assert [each.tolist() for each in found] == expected, f"seed {seed}"


def test_cache_grows_and_becomes_active() -> None:
    cache = SequenceCache(activation_size=50)
    for number in range(49):
        cache.add(np.arange(100, dtype=np.int32) + 100 * number)
    assert not cache.active
    cache.add(array(1, 2, 3))
    assert cache.active
    assert [each.tolist() for each in cache.search(array(9, 1, 2), 16, 2)] == [
        list(range(3, 100)),
        [3],
    ]


@for_each_seed(range(200))
def test_trie_and_cut_equal_a_counter(seed: int) -> None:
    chance = random.Random(seed)
    rows = [
        [chance.randrange(3) for _ in range(chance.randint(1, 10))]
        for _ in range(chance.randint(1, 60))
    ]
    weights = [float(chance.choice([1, 1, 2, 3])) for _ in rows]
    padded = np.full((len(rows), 10), -1, np.int32)
    for row, tokens in zip(padded, rows, strict=True):
        row[: len(tokens)] = tokens
    choices = chance.choice([4, 16, 64])
    trie = Trie.build(padded, np.array(weights), np.zeros(len(rows), np.int8))
    tree = trie.best(choices, 10_000)
    assert set(paths(tree)) == slow_tree(rows, weights, choices), f"seed {seed}"
    assert len(set(paths(tree))) == len(tree)
    assert all(parent < node for node, parent in enumerate(tree.parents))
    assert (np.diff(tree.probabilities) <= 1e-6).all()
    assert set(paths(trie.best(choices, 3))) <= set(paths(tree))


def test_cut_counts_different_tokens_of_every_prefix() -> None:
    # Ten prefixes of one chain cost 1 + 2 + ... + 10 = 55 of 64: they stay. Two chains cost 110:
    # the longest prefixes fall until at most 64 are left, 10 + 10 + 9 + 9 + 8 = 46 less.
    chain = np.arange(10, dtype=np.int32)
    one = Trie.build(chain[None], np.ones(1), np.zeros(1, np.int8)).best(64, 64)
    assert len(one) == 10
    two = Trie.build(np.stack([chain, chain + 20]), np.ones(2), np.zeros(2, np.int8)).best(64, 64)
    assert sorted(len(path) for path in paths(two))[-1] == 8
    assert len(two) == 15


def test_weights_of_the_stores() -> None:
    index = BruteIndex(repository=[[1, 2, 3]], common=[[1, 2, 4], [1, 2, 4]])
    parameters = FastCoderParameters(cache=False, draft_tokens=1)
    request = DraftRequest(array(1, 2), index=index)
    for alpha, beta, first in ((1, 1, 4), (3, 1, 3), (1, 0.4, 3)):
        drafter = FastCoderDrafter(replace(parameters, alpha=alpha, beta=beta))
        drafter.begin(request)
        tree = drafter.draft(64)
        assert tree.tokens.tolist() == [first]


def test_each_store_answers_at_its_own_longest_match() -> None:
    index = BruteIndex(repository=[[7, 1, 2, 3]], common=[[1, 2, 4], [9, 2, 5]])
    drafter = FastCoderDrafter()
    drafter.begin(DraftRequest(array(7, 1, 2), index=index))
    assert set(paths(drafter.draft(64))) == {(3,), (4,)}


def test_missing_table_bypasses_a_second_search() -> None:
    index = BruteIndex(repository=[[1, 2, 3]], common=[])
    drafter = FastCoderDrafter()
    drafter.begin(DraftRequest(array(8, 9), index=index))
    assert not len(drafter.draft(64))
    drafter.commit(DraftTree.empty(), [], array(5))
    assert not len(drafter.draft(64))
    drafter.commit(DraftTree.empty(), [], array(8, 9))
    assert not len(drafter.draft(64))
    assert index.lookups == 2
    assert (drafter.counts.fruitless, drafter.counts.known_misses) == (2, 1)
    # Another snapshot may know what this one did not.
    other = BruteIndex(repository=[[8, 9, 4]], common=[])
    drafter.begin(DraftRequest(array(8, 9), index=other))
    assert drafter.draft(64).tokens.tolist() == [4]


def test_a_skipped_search_is_no_miss() -> None:
    newline = 10
    index = BruteIndex(repository=[[1, newline, 3, 4]], common=[])
    parameters = FastCoderParameters(skip_tokens=frozenset([newline]), retrieval_probability=0.5)
    drafter = FastCoderDrafter(parameters)
    drafter.begin(DraftRequest(array(1, newline), index=index))
    drafted = [len(drafter.draft(64)) for _ in range(200)]
    assert set(drafted) == {0, 2}
    assert 60 < drafter.counts.skipped < 140
    assert drafter.counts.known_misses == drafter.counts.fruitless == 0
    again = FastCoderDrafter(parameters)
    again.begin(DraftRequest(array(1, newline), index=index))
    assert [len(again.draft(64)) for _ in range(200)] == drafted


def test_retrieval_everywhere_but_at_skip_positions() -> None:
    index = BruteIndex(repository=[[1, 2, 3]], common=[])
    never = FastCoderParameters(skip_tokens=frozenset([10]), retrieval_probability=0.0)
    drafter = FastCoderDrafter(never)
    drafter.begin(DraftRequest(array(1, 2), index=index))
    assert drafter.draft(64).tokens.tolist() == [3]


def test_updates_of_the_cache() -> None:
    drafter = FastCoderDrafter(FastCoderParameters(activation_size=1, output_chunk=4))
    drafter.begin(DraftRequest(array(*range(30, 60))))
    tree = merged([array(1, 2, 3), array(1, 5)], Source.REPOSITORY)
    # The path [1] was accepted; its longest branch goes on with 2, 3, which is kept with it.
    drafter.commit(tree, [0], array(1, 9))
    assert drafter._cache.search(array(59), 16, 1)[0].tolist() == [1, 2, 3]
    assert drafter._cache.search(array(43), 16, 1) == []
    assert drafter._cache.search(array(44), 16, 1)[0].tolist() == [*range(45, 60), 1, 2, 3]
    assert len(drafter._cache) == 1
    drafter.commit(DraftTree.empty(), [], array(6))
    assert len(drafter._cache) == 1
    drafter.commit(DraftTree.empty(), [], array(7))
    assert len(drafter._cache) == 2
    assert drafter._cache.search(array(9, 6), 16, 2)[0].tolist() == [7]


class SlowFastCoder:
    """Algorithm 1 with lists and loops; draws its random numbers in the same places."""

    def __init__(self, parameters: FastCoderParameters, index: BruteIndex, prompt: list[int]):
        self.parameters, self.index, self.context = parameters, index, prompt
        self.sequences: list[list[int]] = []
        self.chunk: list[int] = []
        self.missing: set[Path] = set()
        self.chance = random.Random(parameters.seed)

    def tree(self) -> set[Path]:
        wanted = self.parameters
        if wanted.cache and len(self.sequences) >= wanted.activation_size:
            rows = slow_search(self.sequences, self.context, 16, 2)
            if rows:
                return slow_tree(rows, [1.0] * len(rows), 64)
        suffix = tuple(self.context[-2:])
        if wanted.retrieval_strategy:
            if suffix in self.missing:
                return set()
            if suffix[-1] in wanted.skip_tokens and self.chance.random() >= 0.5:
                return set()
        rows, weights = [], []
        for store, weight in ((Source.REPOSITORY, wanted.alpha), (Source.COMMON, wanted.beta)):
            if store == Source.REPOSITORY and not wanted.repository:
                continue
            known = self.index.occurrences(store, self.context[-16:], 10)
            best = max((length for length, _ in known), default=0)
            if best >= 2:
                rows += [row for length, row in known if length == best]
                weights += [weight for length, _ in known if length == best]
        if not rows:
            self.missing.add(suffix)
            return set()
        return slow_tree(rows, weights, 64)

    def commit(self, tree: DraftTree, path: list[int], tokens: list[int]) -> None:
        if path:
            accepted = paths(tree)[path[-1]]
            through = [p for p in paths(tree) if p[: len(accepted)] == accepted]
            best = max(through, key=len)
            self.sequences.append([*self.context[-16:], *best])
        self.chunk += tokens
        while len(self.chunk) >= 20:
            self.sequences.append(self.chunk[:20])
            self.chunk = self.chunk[20:]
        self.context = self.context + tokens


def repetitive_text(chance: random.Random, length: int) -> list[int]:
    """Text made of a few phrases, with newlines (token 0)."""
    phrases = [[chance.randrange(1, 9) for _ in range(6)] + [0] for _ in range(6)]
    text: list[int] = []
    while len(text) < length:
        text += chance.choice(phrases)[chance.randrange(3) :]
        if chance.random() < 0.3:
            text.append(chance.randrange(9))
    return text[:length]


@for_each_seed(range(8))
@pytest.mark.parametrize("components", ["all", "no cache", "no strategy", "no repository"])
def test_the_whole_rule_equals_its_slow_form(seed: int, components: str) -> None:
    chance = random.Random(seed)
    parameters = FastCoderParameters(
        activation_size=5,
        skip_tokens=frozenset([0]),
        seed=seed,
        alpha=chance.choice([1.0, 2.0]),
        cache=components != "no cache",
        retrieval_strategy=components != "no strategy",
        repository=components != "no repository",
    )
    # One source of phrases, so that stores, prompt and output have much in common.
    text = repetitive_text(chance, 400)
    index = BruteIndex([text[:80], text[80:140]], [text[140:200]])
    prompt, reference = text[200:230], text[230:400]
    fast = FastCoderDrafter(parameters)
    fast.begin(DraftRequest(array(*prompt), index=index))
    slow = SlowFastCoder(parameters, index, prompt)
    done, drafted = 0, 0
    while done < len(reference):
        tree = fast.draft(64)
        assert set(paths(tree)) == slow.tree(), f"seed {seed}, after {done} tokens"
        path = accepted_path(tree, array(*reference[done:]))
        tokens = reference[done : done + len(path) + 1]
        drafted += len(path)
        fast.commit(tree, path, array(*tokens))
        slow.commit(tree, path, tokens)
        done += len(tokens)
    assert drafted > 20
    if components == "all":
        assert fast.counts.from_cache > 0


def test_no_drafts_without_index_or_context() -> None:
    for prompt in (array(), array(1)):
        drafter = FastCoderDrafter()
        drafter.begin(DraftRequest(prompt, index=BruteIndex([[1, 2, 3]], [])))
        assert not len(drafter.draft(64))
    drafter.begin(DraftRequest(array(1, 2)))
    assert not len(drafter.draft(64))


def test_the_heaviest_prefixes_that_the_cut_leaves_come_first_with_their_share() -> None:
    """Prefixes (1), (1 2), (3), (3 4) cost 1, 2, 1 and 2: of 4 just the last goes."""
    rows = np.array([[1, 2], [3, 4]], np.int32)
    sources = np.array([Source.REPOSITORY, Source.COMMON], np.int8)
    trie = Trie.build(rows, np.array([2.0, 1.0]), sources)
    tree = trie.best(4, 64)
    assert paths(tree) == [(1,), (1, 2), (3,)]
    np.testing.assert_allclose(tree.probabilities, [2 / 3, 2 / 3, 1 / 3], rtol=1e-6)
    assert tree.sources.tolist() == [Source.REPOSITORY, Source.REPOSITORY, Source.COMMON]
    assert paths(trie.best(4, 2)) == [(1,), (1, 2)]
    assert paths(trie.best(6, 64)) == [(1,), (1, 2), (3,), (3, 4)], "six are as many as may be"
    equal = Trie.build(np.array([[5], [6]], np.int32), np.ones(2), sources)
    assert equal.tokens.tolist() == [5, 6], "of equal weight the one met first"
