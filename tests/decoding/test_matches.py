"""How much a drafter has to go by, asked before a draft, and what follows from it."""

from __future__ import annotations

import numpy as np
import pytest
from small_mixture import drafter, request_of

from accel.draft_tree import DraftTree
from accel.sources.prompt import LONGEST_ENDING, MOST_ENDINGS
from accel.sources.protocol import DraftRequest


def common_endings(text):
    """What every earlier end has in common with the end of the text, longest at most."""
    text = list(text)
    common = [0]
    for end in range(1, len(text)):
        length = 0
        while length < min(end, LONGEST_ENDING) and text[end - 1 - length] == text[-1 - length]:
            length += 1
        common.append(length)
    return common


def longest_ending(text):
    """Of all earlier ends, the one that has most in common with the end of the text."""
    return max(common_endings(text))


def followed(text, count):
    """What followed the newest of the longest, taken to go on where it reaches the end."""
    text, common = list(text), common_endings(text)
    place = max(end for end, length in enumerate(common) if length == max(common))
    if not max(common):
        return []
    found = []
    for k in range(count):
        token = text[place + k] if place + k < len(text) else found[place + k - len(text)]
        if token < 0:
            break
        found.append(token)
    return found


def path_to(tree, node):
    path = []
    while node >= 0:
        path.insert(0, int(node))
        node = tree.parents[node]
    return path


@pytest.mark.parametrize("seed", range(6))
def test_the_longest_match_is_that_of_a_plain_search(seed):
    """Whatever was drafted and accepted between, told in one call or part by part."""
    random = np.random.default_rng(seed)
    asked = drafter()
    request = request_of(random, index=bool(seed % 2))
    asked.begin(DraftRequest(request.prompt, index=request.index))
    text = request.prompt.tolist()
    for _ in range(60):
        assert asked.match() == longest_ending(text), f"seed {seed}"
        tree, path = asked.draft(8), []
        if random.random() < 0.4:
            tree = tree.prefix(0)
        elif len(tree) and random.random() < 0.7:
            path = path_to(tree, random.integers(len(tree)))
        tokens = [*tree.tokens[path].tolist(), *random.integers(1, 40, 1).tolist()]
        asked.commit(tree, path, np.array(tokens, np.int32))
        text += tokens
        if random.random() < 0.3:  # several steps without a question
            text.append(int(random.integers(1, 40)))
            asked.commit(tree.prefix(0), [], np.array(text[-1:], np.int32))


def test_asking_changes_no_tree():
    random = np.random.default_rng(3)
    request = request_of(random)
    asked, silent = drafter(), drafter()
    asked.begin(request)
    silent.begin(request)
    for step in range(40):
        if step % 3:
            asked.match()
        left, right = asked.draft(12), silent.draft(12)
        assert left.tokens.tolist() == right.tokens.tolist()
        assert left.parents.tolist() == right.parents.tolist()
        assert left.probabilities.tolist() == right.probabilities.tolist()
        node = int(random.integers(len(left))) if len(left) else -1
        path = path_to(left, node)
        tokens = np.array([*left.tokens[path], random.integers(1, 40)], np.int32)
        asked.commit(left, path, tokens)
        silent.commit(right, path, tokens)


def test_asking_after_steps_without_drafts_adds_all_that_came_since():
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    request = request_of(random)
    asked, silent = drafter(), drafter()
    asked.begin(request)
    silent.begin(request)
    written = request.prompt.tolist()
    nothing = DraftTree.empty()
    for step in range(60):
        left, right = asked.draft(12), silent.draft(12)
        assert left.tokens.tolist() == right.tokens.tolist()
        assert left.probabilities.tolist() == right.probabilities.tolist()
        node = int(random.integers(len(left))) if len(left) else -1
        path = path_to(left, node)
        tokens = np.array([*left.tokens[path], random.integers(1, 40)], np.int32)
        asked.commit(left, path, tokens)
        silent.commit(right, path, tokens)
        written += tokens.tolist()
        for _ in range(step % 4):
            plain = random.integers(1, 40, 1).astype(np.int32)
            asked.commit(nothing, [], plain)
            silent.commit(nothing, [], plain)
            written.append(int(plain[0]))
        suffix = request.suffix.tolist()
        assert asked.match() == longest_ending([*suffix, -1, *written]), f"step {step}"


def test_matches_end_with_the_text_before_the_cursor():
    """What stands after the cursor counts as text that stood earlier, but nothing runs across."""
    text = np.array([5, 6, 7, 8], np.int32)
    asked = drafter()
    asked.begin(DraftRequest(np.array([9, 6, 7, 8], np.int32), suffix=text))
    assert asked.match() == 3
    asked.begin(DraftRequest(text[:1], suffix=text[1:]))
    assert asked.match() == 0


def test_only_the_newest_places_are_looked_at():
    text = [1, 2, 3, *[4, 3] * (MOST_ENDINGS + 1), 1, 2, 3]
    asked = drafter()
    asked.begin(DraftRequest(np.array(text, np.int32)))
    assert asked.match() == 1
    assert longest_ending(text) == 3


@pytest.mark.parametrize("seed", range(8))
def test_a_chain_is_what_followed_the_newest_of_the_longest_matches(seed):
    """Trees, chains and nothing by turns, some of them right; a text that begins to loop."""
    random = np.random.default_rng(seed)
    asked, other = drafter(), drafter()
    request = request_of(random, index=bool(seed % 2))
    asked.begin(request)
    other.begin(request)
    text = [*request.suffix.tolist(), -1, *request.prompt.tolist()]
    for step in range(80):
        assert asked.match() == longest_ending(text), f"seed {seed}, step {step}"
        kind, path, tree = random.integers(3), [], DraftTree.empty()
        if kind == 1:
            tree = asked.chain(int(random.integers(1, 12)))
            wanted = followed(text, 12)[: len(tree)]
            assert tree.tokens.tolist() == wanted, f"seed {seed}, step {step}"
            assert tree.parents.tolist() == list(range(-1, len(tree) - 1))
        elif kind == 2:
            tree = asked.draft(8)
        if len(tree) and random.random() < 0.7:
            path = path_to(tree, random.integers(len(tree)))
        own = text[-3] if step > 40 and text[-3] >= 0 else int(random.integers(1, 40))
        tokens = np.array([*tree.tokens[path], own], np.int32)
        asked.commit(tree, path, tokens)
        other.commit(DraftTree.empty(), [], tokens)
        text += tokens.tolist()
    left, right = asked.draft(12), other.draft(12)
    assert set(left.tokens.tolist()) & set(right.tokens.tolist())


def test_without_a_match_a_chain_is_empty():
    asked = drafter()
    asked.begin(DraftRequest(np.array([1, 2, 3], np.int32)))
    assert asked.match() == 0
    assert not len(asked.chain(5))
