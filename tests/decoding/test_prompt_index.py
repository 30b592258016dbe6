"""The dynamic index against a scan of the whole text."""

from __future__ import annotations

import numpy as np
from seeds import for_each_seed

from accel.draft_tree import Source
from accel.drafting.retrieval.prompt_index import PromptIndex


def slow_lookup(parts, context, max_match, depth):
    """(length, newest first, row) of every occurrence, by comparing lists. ``parts`` are texts
    that do not belong together, oldest first."""
    actual = []
    position = 0
    for part in parts:
        for start in range(1, len(part)):
            length = 0
            while (
                length < min(max_match, len(context), start)
                and part[start - 1 - length] == context[-1 - length]
            ):
                length += 1
            if length:
                row = (part[start : start + depth] + [-1] * depth)[:depth]
                actual.append((-length, -(position + start), row))
        position += len(part) + 1
    return [(-length, row) for length, _, row in sorted(actual)]


@for_each_seed(range(30))
def test_lookup_equals_a_scan(seed):
    random = np.random.default_rng(seed)
    vocabulary = int(random.integers(2, 12))
    suffix = random.integers(0, vocabulary, random.integers(0, 40)).astype(np.int32)
    prompt = random.integers(0, vocabulary, random.integers(1, 60)).astype(np.int32)
    output = random.integers(0, vocabulary, random.integers(0, 30)).astype(np.int32)
    index = PromptIndex()
    index.begin(random.integers(0, 50, 90).astype(np.int32), suffix)  # an earlier request
    index.begin(prompt, suffix)
    for token in output:
        index.extend(np.array([token], np.int32))
    actual = index.lookup(index.context, max_match=6, limit=1000, depth=5)
    parts = [suffix.tolist(), prompt.tolist() + output.tolist()]
    expected = slow_lookup(parts, parts[1], 6, 5)
    assert list(zip(actual.lengths.tolist(), actual.tokens.tolist(), strict=True)) == expected
    assert set(actual.sources.tolist()) <= {Source.PROMPT, Source.SUFFIX}


def test_growth_token_by_token_equals_one_piece():
    random = np.random.default_rng(3)
    tokens = random.integers(0, 9, 300).astype(np.int32)
    whole, grown = PromptIndex(), PromptIndex()
    whole.begin(tokens, np.empty(0, np.int32))
    grown.begin(tokens[:1], np.empty(0, np.int32))
    for token in tokens[1:]:
        grown.extend(np.array([token], np.int32))
    first = whole.lookup(tokens, max_match=8, limit=50, depth=6)
    second = grown.lookup(tokens, max_match=8, limit=50, depth=6)
    assert (first.tokens == second.tokens).all()
    assert (first.lengths == second.lengths).all()


def test_limit_keeps_the_longest_and_newest():
    index = PromptIndex()
    index.begin(np.array([5, 1, 2, 7, 1, 2, 8, 2, 9, 1, 2], np.int32), np.empty(0, np.int32))
    actual = index.lookup(index.context, max_match=4, limit=2, depth=1)
    assert actual.lengths.tolist() == [2, 2]
    assert actual.tokens.ravel().tolist() == [8, 7]


def test_prompt_and_output_are_told_apart():
    index = PromptIndex()
    index.begin(np.array([1, 2, 3], np.int32), np.array([4, 5], np.int32))
    index.extend(np.array([6, 7], np.int32))
    assert index.prompt.tolist() == [1, 2, 3]
    assert index.output.tolist() == [6, 7]
    assert index.context.tolist() == [1, 2, 3, 6, 7]
