"""How much a drafter has to go by, asked before a draft, and what follows from it."""

from __future__ import annotations

import numpy as np
import pytest
from small_mixture import drafter, request_of

from accel.draft_tree import DraftTree
from accel.planner import Planner
from accel.profile import Costs
from accel.sources.prompt import LONGEST_ENDING, MOST_ENDINGS
from accel.sources.protocol import DraftRequest
from accel.trust import BY_MATCH, USUAL_DRAFT_S, Trust


def longest_ending(text):
    """Of all earlier ends, the one that has most in common with the end of the text."""
    text = list(text)
    common = [0]
    for end in range(1, len(text)):
        length = 0
        while length < min(end, LONGEST_ENDING) and text[end - 1 - length] == text[-1 - length]:
            length += 1
        common.append(length)
    return max(common)


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


def test_drafts_are_made_where_they_are_likely_to_pay():
    """On a forward of 0.3 ms behind a longer match alone, on one of 30 ms behind any."""
    wanted = [match for match in range(20) if Trust().wants_draft(3e-4, lambda m=match: m)]
    assert wanted == list(range(4, 20))
    assert all(Trust().wants_draft(3e-2, lambda m=match: m) for match in range(20))


def drafted(trust, match, accepted, gain_s):
    if trust.wants_draft(4e-4, lambda: match):
        trust.drafted(USUAL_DRAFT_S, taken=True, gain_s=gain_s)
        trust.learn(3.0, accepted)


def test_while_drafts_pay_nobody_asks():
    trust = Trust()
    drafted(trust, 9, 8, gain_s=5e-3)
    assert trust.wants_draft(4e-4, lambda: pytest.fail("asked"))
    for _ in range(40):
        drafted(trust, 9, 0, gain_s=0.0)
    assert not trust.wants_draft(4e-4, lambda: 0)


def test_who_is_cautious_asks_although_drafts_pay():
    trust = Trust(is_cautious=True)
    drafted(trust, 9, 8, gain_s=5e-3)
    assert not trust.wants_draft(4e-4, lambda: 0)
    for _ in range(2):
        assert not trust.wants_draft(4e-4, lambda: pytest.fail("asked again at once"))
    assert trust.wants_draft(4e-4, lambda: 9)


def test_whoever_has_nothing_to_hope_asks_less_and_less_often():
    trust, asked = Trust(), []
    for step in range(30):
        trust.wants_draft(4e-4, lambda at=step: asked.append(at) or 0)
    assert asked == [0, 3, 8, 15, 23]
    while not trust.wants_draft(4e-4, lambda: 9):
        pass
    trust.drafted(USUAL_DRAFT_S, taken=True, gain_s=0.0)
    trust.learn(3.0, 0)
    first = len(asked)
    for step in range(4):
        trust.wants_draft(4e-4, lambda at=step: asked.append(at) or 0)
    assert asked[first:] == [0, 3], "a match found begins the count anew"


def test_what_matches_bring_is_learnt_in_the_request():
    rich, poor = Trust(), Trust()
    for _ in range(8):
        drafted(rich, 5, 8, gain_s=0.0)
        drafted(poor, 5, 0, gain_s=0.0)
    assert rich.wants_draft(4e-4, lambda: 2)
    assert not Trust().wants_draft(4e-4, lambda: 2)
    assert not poor.wants_draft(4e-4, lambda: 5)
    for _ in range(100):
        poor.wants_draft(4e-4, lambda: 0)
    assert wants_at_last(poor, 5), "what was learnt fades while nothing is drafted"


def wants_at_last(trust, match):
    """Asked until the trust looks at the match again."""
    return any(trust.wants_draft(4e-4, lambda: match) for _ in range(10))


def test_a_single_slow_draft_does_not_end_drafting():
    trust = Trust()
    trust.wants_draft(4e-4, lambda: 9)
    trust.drafted(1.0, taken=True, gain_s=0.0)
    trust.learn(4.0, 4)
    assert trust.wants_draft(4e-4, lambda: 9)


def test_questions_become_rare_where_nothing_is_hoped_for():
    trust, asked = Trust(), []
    for _ in range(200):
        assert not trust.wants_draft(4e-4, lambda: asked.append(0) or 0)
    assert 25 < len(asked) < 60
    assert wants_at_last(trust, 9)


def test_longer_matches_bring_more():
    assert list(BY_MATCH) == sorted(BY_MATCH)


def test_slopes_are_the_least_that_more_nodes_cost():
    random = np.random.default_rng(0)
    rows = [1, 2, 4, 8, 16, 32]
    costs = Costs([256], rows, np.sort(random.random((1, len(rows)))))
    prices = Planner(costs, limit=32).prices(1, 100, 1.0, 0.1)
    seconds = prices.seconds
    for count in range(len(seconds) - 1):
        rises = [(seconds[more] - seconds[count]) / (more - count) for more in range(count + 1, 32)]
        assert prices.slopes[count] == pytest.approx(max(min(rises), 0) + 1e-5)
