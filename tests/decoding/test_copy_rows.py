"""Matches, gathering and expansion of copy rows against their obvious forms."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left

import numpy as np
import pytest
from seeds import for_each_seed

from accel.drafting.copy import candidates as rows_of
from accel.drafting.copy.kernels import best_rows
from accel.drafting.copy.tree_search import (
    CandidateRows,
    CopyTree,
    Fitted,
    Worth,
    expand_rows,
)
from tests.benchmarks.training.copy_votes import gather_rows


def slow_match(text: list[int], row: int, context: list[int]) -> int:
    length = 0
    while length < min(row, len(context)) and text[row - 1 - length] == context[-1 - length]:
        length += 1
    return length


@for_each_seed(range(20))
def test_matches_kept_current_equal_matches_measured(seed):
    random = np.random.default_rng(seed)
    text = random.integers(0, 4, 50).astype(np.int32)
    context = random.integers(0, 4, 30).astype(np.int32)
    pool = np.concatenate([text, [-1], context, [-1]]).astype(np.int32)
    kept = np.zeros(len(pool), np.int32)
    stop = 51
    while stop < 81:
        count = min(int(random.integers(1, 9)), 81 - stop)
        stop += count
        rows_of.catch_up(pool, kept, 0, 50, stop, count)
        rows_of.catch_up(pool, kept, 51, stop, stop, count)
    measured = np.zeros(len(pool), np.int32)
    rows_of.measure_matches(pool, measured, 0, 50, 51, 81)
    rows_of.measure_matches(pool, measured, 51, 81, 51, 81)
    assert kept[:50].tolist() == measured[:50].tolist(), f"seed {seed}"
    assert kept[51:81].tolist() == measured[51:81].tolist(), f"seed {seed}"
    obvious = [slow_match(text.tolist(), row, context.tolist()) for row in range(50)]
    assert kept[:50].tolist() == obvious, f"seed {seed}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"\n    ", rows_of.BREAK),
        (b":\n", rows_of.BREAK),
        (b" name", 2),
        (b"name", 3),
        (b"_x", 3),
        (" é".encode(), 2),
        (b" 12", 4),
        (b"(", 5),
        (b".get(", 5),
        (b")", 6),
        (b".x", 7),
        (b" =", 8),
        (b"'", 9),
        (b"  ", 0),
        (b"", 0),
        (b" +", 0),
    ],
)
def test_classes_of_tokens(text, expected):
    assert rows_of.token_classes([text])[0] == expected


def test_a_bucket_is_the_place_of_the_first_limit_that_is_not_exceeded():
    for limits in (
        rows_of.MATCH_LIMITS,
        rows_of.COARSE_LIMITS,
        rows_of.OFF_TRACK_LIMITS,
        rows_of.AGE_LIMITS,
    ):
        for value in range(1100):
            assert rows_of.bucket_of(value, limits) == bisect_left(limits, value)


def test_every_feature_has_a_weight_of_its_own_table():
    random = np.random.default_rng(1)
    for _ in range(2000):
        kind = int(random.integers(0, rows_of.KINDS))
        off_track = int(random.integers(0, 40))
        offset, anchor = random.integers(0, 200, 2).tolist()
        classes = random.integers(0, 10, 2).tolist()
        here = rows_of.Standing(anchor, off_track, *classes, anchor - 3, anchor + 5)
        actual = rows_of.features_of(
            kind, int(random.integers(0, 60)), offset, int(random.integers(0, 2000)),
            int(random.integers(0, 10)), here,
        )  # fmt: skip
        assert rows_of.MATCH_AT <= actual[0] < rows_of.RELATION_AT
        assert rows_of.RELATION_AT <= actual[1] < rows_of.PAIR_AT or (
            kind > rows_of.SHIFTED and actual[1] >= rows_of.AGE_AT
        )
        assert rows_of.SYNTAX_AT <= actual[3] < rows_of.CHANGE_AT
        assert (rows_of.CHANGE_AT <= actual[4] < rows_of.ESCAPE_AT) == (
            kind <= rows_of.SHIFTED and off_track == 1
        )


def slow_expand(
    pool, match, offsets, rows, kinds, stop, state, classes, weights, places, slips, at, max_nodes
):
    """The votes of copy rows in their plainest form. Returns tokens, parents, probabilities."""
    anchor, off_track, last, lost, line_start, line_end = state
    heap: list[tuple[float, int, tuple]] = []
    tree: list[tuple[int, int, float]] = []
    added = 0

    def offer(node, alive, depth, reach, here_anchor, here_off, here_class):
        nonlocal added
        breaks = (line_start, line_end) if here_anchor == anchor and here_off > 0 else (-9, -9)
        state = rows_of.bucket_of(here_off, rows_of.OFF_TRACK_LIMITS)
        escape = rows_of.ESCAPE_AT + state * 10 + here_class
        total = math.exp(weights[escape])
        groups: dict[int, list[tuple[float, bool, int]]] = {}
        for row in alive:
            position = rows[row]
            token = pool[position + depth]
            if token < 0:
                continue
            actual = rows_of.features_of(
                kinds[row], match[position] + depth, offsets[position + depth], stop - position,
                classes[token],
                rows_of.Standing(int(here_anchor), int(here_off), int(here_class), lost, *breaks),
            )  # fmt: skip
            vote = math.exp(sum(weights[index] for index in actual))
            leads = position == at
            vote *= (slips[3, 1] - slips[3, 0]) / slips[3, 0] if leads else 1.0
            on_track = kinds[row] <= rows_of.SHIFTED and (
                here_off == 0 and offsets[position + depth] == here_anchor
            )
            total += vote
            groups.setdefault(int(token), []).append((vote, on_track or leads, row))
        for token, votes in groups.items():
            reach_here = reach * sum(vote for vote, _, _ in votes) / total
            followed = [vote for vote in votes if vote[1]]
            leading = [vote for vote in followed if rows[vote[2]] == at]
            best = max(votes, key=lambda vote: vote[0])
            if followed:
                best = (leading or followed)[-1]
                slipped, copied = slips[places[rows[best[2]] + depth]]
                reach_here *= 1 - slipped / copied
            joined = kinds[best[2]] <= rows_of.SHIFTED and (
                best[1] or match[rows[best[2]]] + depth + 1 >= rows_of.REANCHOR_MATCH
            )
            if joined:
                where = (int(offsets[rows[best[2]] + depth + 1]), 0)
            else:
                where = (here_anchor, here_off + 1)
            # Rows are visited in turn from either end, as the compiled lists are.
            item = (node, token, [row for _, _, row in reversed(votes)], depth + 1, *where)
            heapq.heappush(heap, (-reach_here, added, item))
            added += 1

    offer(-1, range(len(rows)), 0, 1.0, anchor, off_track, last)
    while heap and len(tree) < max_nodes:
        reach, _, (node, token, alive, depth, where, off) = heapq.heappop(heap)
        tree.append((token, node, -reach))
        offer(len(tree) - 1, alive, depth, -reach, where, off, int(classes[token]))
    return tree


FREE = np.ones(65), np.zeros(65)
"""Seconds and slopes where nodes cost nothing."""


def random_text(seed):
    """A pool of an original and of output, and a cursor in it: arguments of ``gather_rows``, then
    classes of places, slips and the place that leads."""
    random = np.random.default_rng(seed)
    vocabulary = 6
    original = random.integers(0, vocabulary, 40).astype(np.int32)
    context = random.integers(0, vocabulary, 60).astype(np.int32)
    pool = np.concatenate([original, [-1], context, [-1, -1]]).astype(np.int32)
    offsets = np.concatenate([np.arange(41), np.full(62, -1)]).astype(np.int32)
    match = np.zeros(len(pool), np.int32)
    rows_of.measure_matches(pool, match, 0, 40, 41, 101)
    rows_of.measure_matches(pool, match, 41, 101, 41, 101)
    spans = np.array([[0, 40, rows_of.ORIGINAL], [41, 101, rows_of.OUTPUT]], np.int32)
    classes = random.integers(0, 10, vocabulary).astype(np.int8)
    weights = random.normal(0, 1, rows_of.WEIGHTS)
    anchor, off_track = int(random.integers(0, 40)), int(random.integers(0, 5))
    positions = random.integers(0, 3, len(pool)).astype(np.int8)
    slips = np.array([[0.0, 1.0], [0.1, 1.0], [0.4, 1.0], [random.uniform(0.1, 1), 2.0]])
    kinds = int(classes[context[-1]]), int(classes[original[anchor]])
    here = rows_of.Standing(anchor, off_track, *kinds, anchor - 4, anchor + 3)
    leading = anchor if seed % 2 else -1
    return (pool, match, offsets, spans, 101, here, classes, weights), positions, slips, leading


def grown(text, places, slips, leading, nodes, prices=FREE, trust=1.0, rate=0.0):
    """Tokens, parents and probabilities of the compiled tree, and its rows and kinds."""
    pool, match, offsets, _, stop, here, classes, weights = text
    rows, kinds, _ = gather_rows(*text, 64)
    tree = CopyTree(*(np.empty(nodes, kind) for kind in (np.int32, np.int32, np.float32, np.int8)))
    count = expand_rows(
        CandidateRows(rows, kinds, pool, match, offsets, places, classes, stop, leading),
        here,
        Fitted(weights, slips),
        Worth(nodes, 0.0, *prices, trust, rate),
        tree,
    )
    return [array[:count] for array in tree[:3]], rows, kinds


@for_each_seed(range(12))
def test_expansion_equals_the_slow_form(seed):
    text, positions, slips, leading = random_text(seed)
    pool, match, offsets, _, stop, state, classes, weights = text
    (tokens, parents, chances), rows, kinds = grown(text, positions, slips, leading, 40)
    slow = slow_expand(
        pool,
        match,
        offsets,
        rows,
        kinds,
        stop,
        state,
        classes,
        weights,
        positions,
        slips,
        leading,
        40,
    )
    assert chances.tolist() == pytest.approx([chance for _, _, chance in slow]), f"seed {seed}"
    assert list(zip(tokens.tolist(), parents.tolist(), strict=True)) == [
        (token, parent) for token, parent, _ in slow
    ], f"seed {seed}"


@for_each_seed(range(30))
def test_a_tree_has_the_nodes_that_bring_more_than_their_time(seed):
    random = np.random.default_rng(seed)
    text, *rest = random_text(seed)
    seconds = np.cumsum(random.uniform(0, 1, 65)) / 10 + 1
    steps = np.arange(65)
    marginal = np.array([
        ((seconds[n + 1 :] - seconds[n]) / (steps[n + 1 :] - n)).min(initial=9.0) for n in steps
    ])  # fmt: skip
    trust, rate = random.uniform(0.5, 1.2), random.uniform(0.2, 3)
    (_, _, every), _, _ = grown(text, *rest, 64)
    (_, _, chosen), _, _ = grown(text, *rest, 64, (seconds, marginal), trust, rate)
    expected = 1 + trust * np.concatenate([[0.0], np.cumsum(every, dtype=np.float64)])
    values = expected - rate * seconds[: len(expected)]
    assert values[len(chosen)] == pytest.approx(values.max()), f"seed {seed}"
    assert chosen.tolist() == every[: len(chosen)].tolist(), f"seed {seed}"


@for_each_seed(range(30))
def test_the_best_rows_equal_those_that_are_sorted(seed):
    text, *_ = random_text(seed)
    weights = text[-1]
    for limit in (1, 7, 64):
        actual = [np.empty(limit, kind) for kind in (np.int32, np.int8, np.float64)]
        count = best_rows(*text, *actual)
        rows, kinds, scores = (array[:count] for array in actual)
        sorted_rows, sorted_kinds, features = gather_rows(*text, limit)
        assert scores == pytest.approx(weights[features].sum(axis=1)), f"seed {seed}"
        above = scores > scores[-1] + 1e-9  # of equals at the end either may be left out
        pairs = set(zip(rows[above].tolist(), kinds[above].tolist(), strict=True))
        assert pairs == set(
            zip(sorted_rows[above].tolist(), sorted_kinds[above].tolist(), strict=True)
        ), f"seed {seed}"
