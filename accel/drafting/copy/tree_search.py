"""Best-first draft tree from copy rows.

The rows that spell a node's path vote for the next token with ``exp(score)``, against the escape
weight of "something else". The tree with the largest value, expected tokens less ``rate`` times
seconds, is taken: the best ratio of a single step would stop too early where all is sure, and
verify too much where nothing is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.drafting.copy.candidates import (
    CLASSES,
    ESCAPE_AT,
    NOWHERE,
    OFF_TRACK_LIMITS,
    ON_TRACK,
    REANCHOR_MATCH,
    RELATION_AT,
    SHIFTED,
    STATES,
    Standing,
    bucket_of,
    features_of,
)
from accel.drafting.copy.deviation_rate import FOLLOWING, copy_rate, odds
from accel.drafting.heap import sift_down, sift_up
from accel.native.numba_cache import compiled

NO_ROW = -1


class CandidateRows(NamedTuple):
    """The rows that a tree is grown from.

    rows, kinds: int32 and int8 [rows], where they are in the pool, best first; pool, match,
    offsets: int32, as in ``CopyPool``; places: int8, as in ``slips``; classes: int8 [vocabulary];
    stop: where the pool's text ends; leading: the position that the cursor follows as the
    instruction says, -1 for none.
    """

    rows: TokenArray
    kinds: NDArray[np.int8]
    pool: TokenArray
    match: TokenArray
    offsets: TokenArray
    places: NDArray[np.int8]
    classes: NDArray[np.int8]
    stop: int
    leading: int


class Fitted(NamedTuple):
    """Fitted numbers: float64, weights as in ``copy_rows``, slips as there."""

    weights: NDArray[np.float64]
    slips: NDArray[np.float64]


class Worth(NamedTuple):
    """Limits of a tree's growth.

    most: nodes at most; least: probability of a path at least; seconds, marginal, acceptance_scale:
    as in ``base.VerifyCosts``; rate: tokens per second of steps on the average, 0 to take all
    nodes.
    """

    most: int
    least: float
    seconds: NDArray[np.float64]
    marginal: NDArray[np.float64]
    acceptance_scale: float
    rate: float


class CopyTree(NamedTuple):
    """Nodes that are written: tokens, parents, path probabilities and kinds of rows."""

    tokens: TokenArray
    parents: TokenArray
    chances: NDArray[np.float32]
    kinds: NDArray[np.int8]

    @classmethod
    def allocate(cls, nodes: int) -> CopyTree:
        """Return room for ``nodes``."""
        numbers: tuple[Any, ...] = np.int32, np.int32, np.float32, np.int8
        return cls(*(np.empty(nodes, dtype) for dtype in numbers))


class _Votes(NamedTuple):
    """Votes of rows for the token after a path, by distinct token.

    values: the tokens; sums: of their votes; heads: the first row of each, which is followed, for
    every row, by the ``following`` one; strongest, strength: the row with the largest vote for it,
    and that vote; follows: true on the track of the original.
    """

    values: TokenArray
    sums: NDArray[np.float64]
    heads: TokenArray
    following: TokenArray
    strongest: TokenArray
    strength: NDArray[np.float64]
    follows: NDArray[np.bool_]


class _Candidates(NamedTuple):
    """Nodes that may be taken, and a heap of those that were not. depths: of their paths; chances:
    of these; first_rows: which spell them; anchors, off_tracks: where the text has got to after
    them."""

    tokens: TokenArray
    parents: TokenArray
    depths: TokenArray
    chances: NDArray[np.float64]
    kinds: NDArray[np.int8]
    first_rows: TokenArray
    anchors: TokenArray
    off_tracks: TokenArray
    heap: TokenArray


@compiled(forceinline=True)
def _votes_of(rows: int) -> _Votes:
    return _Votes(
        np.empty(rows, np.int32),
        np.empty(rows, np.float64),
        np.empty(rows, np.int32),
        np.empty(rows, np.int32),
        np.empty(rows, np.int32),
        np.empty(rows, np.float64),
        np.empty(rows, np.bool_),
    )


@compiled(forceinline=True)
def _allocate(count: int) -> _Candidates:
    return _Candidates(
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.float64),
        np.empty(count, np.int8),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
    )


@compiled(forceinline=True, borrows=True, inner=True)
def _vote(
    sources: CandidateRows,
    weights: NDArray[np.float64],
    boost: float,
    first_row: int,
    depth: int,
    here: Standing,
    votes: _Votes,
) -> tuple[int, float]:
    """Have the rows from ``first_row`` on, which spell a path of some depth, vote for what comes
    after it; returns how many tokens they name, and the sum of all votes and of the escape."""
    distinct, row = 0, first_row
    escape = ESCAPE_AT + bucket_of(here.off_track, OFF_TRACK_LIMITS) * CLASSES + here.last_class
    total = np.exp(weights[escape])
    while row != NO_ROW:
        following, position = votes.following[row], sources.rows[row]
        value = sources.pool[position + depth]
        if value >= 0:
            offset, length = sources.offsets[position + depth], sources.match[position] + depth
            kind, age = np.int64(sources.kinds[row]), sources.stop - position
            first, second, third, fourth, fifth = features_of(
                kind, length, offset, age, sources.classes[value], here
            )
            score = weights[first] + weights[second] + weights[third]
            vote = np.exp(score + weights[fourth] + weights[fifth])
            on_track = (
                sources.kinds[row] <= SHIFTED
                and RELATION_AT <= second < RELATION_AT + (ON_TRACK + 1) * STATES * 2
            )
            if position == sources.leading:
                vote, on_track = vote * boost, True
            total += vote
            entry = 0
            while entry < distinct and votes.values[entry] != value:
                entry += 1
            if entry == distinct:
                distinct += 1
                votes.values[entry], votes.sums[entry] = value, 0.0
                votes.heads[entry], votes.strength[entry] = NO_ROW, -1.0
                votes.follows[entry] = False
            votes.sums[entry] += vote
            votes.following[row], votes.heads[entry] = votes.heads[entry], row
            follows = votes.follows[entry]
            is_led = follows and sources.rows[votes.strongest[entry]] == sources.leading
            if (on_track and not is_led) or (vote > votes.strength[entry] and not follows):
                votes.strength[entry], votes.strongest[entry] = vote, row
                votes.follows[entry] = on_track
        row = following
    return distinct, total


@compiled(forceinline=True, borrows=True)
def _keep(
    sources: CandidateRows,
    votes: _Votes,
    entry: int,
    node: int,
    depth: int,
    chance: float,
    here: Standing,
    candidates: _Candidates,
    item: int,
) -> None:
    """Keep a token that was voted for as a candidate after a node, whose path is so deep."""
    best = votes.strongest[entry]
    candidates.tokens[item], candidates.parents[item] = votes.values[entry], node
    candidates.depths[item], candidates.chances[item] = depth + 1, chance
    candidates.kinds[item], candidates.first_rows[item] = sources.kinds[best], votes.heads[entry]
    begin = sources.rows[best]
    has_joined = sources.kinds[best] <= SHIFTED and (
        votes.follows[entry] or sources.match[begin] + depth + 1 >= REANCHOR_MATCH
    )
    candidates.anchors[item] = sources.offsets[begin + depth + 1] if has_joined else here.anchor
    candidates.off_tracks[item] = 0 if has_joined else here.off_track + 1


@compiled(forceinline=True, borrows=True)
def _behind(root: Standing, anchor: int, off_track: int, last_class: int) -> Standing:
    """Return the text's state after a path: the root alone knows classes between lines."""
    is_in_line = anchor == root.anchor and off_track > 0
    return Standing(
        np.int64(anchor),
        np.int64(off_track),
        np.int64(last_class),
        root.lost_class,
        root.line_start if is_in_line else NOWHERE,
        root.line_end if is_in_line else NOWHERE,
    )


@compiled(forceinline=True, borrows=True)
def _least_of(worth: Worth) -> float:
    """Return the least probability of a path: growth ends before it comes to what is less probable
    than the cheapest node has to be."""
    if worth.rate <= 0:
        return worth.least
    marginal_cost = worth.marginal[0]
    for node in range(1, worth.most):
        marginal_cost = min(marginal_cost, worth.marginal[node])
    return max(worth.least, worth.rate * marginal_cost / worth.acceptance_scale)


@compiled(forceinline=True)
def expand_rows(
    sources: CandidateRows, root: Standing, fitted: Fitted, worth: Worth, tree: CopyTree
) -> int:
    """Write the likeliest nodes, best first; returns how many of them are the best tree."""
    slips, rows = fitted.slips, len(sources.rows)
    seconds, acceptance_scale, rate = worth.seconds, worth.acceptance_scale, worth.rate
    # Every candidate takes at least one row from its siblings, so this many can ever exist.
    capacity = (worth.most + 1) * 4 + rows
    offers, votes = _allocate(capacity), _votes_of(rows)
    heap, chances = offers.heap, offers.chances
    for row in range(rows):
        votes.following[row] = row + 1 if row + 1 < rows else NO_ROW
    boost, least = odds(slips, FOLLOWING), _least_of(worth)
    expected = 1.0
    best_value, best_count = expected - rate * seconds[0], 0
    candidates = size = nodes = depth = 0
    node, first_row, reach = -1, 0 if rows else NO_ROW, 1.0
    here = _behind(root, root.anchor, root.off_track, root.last_class)
    while True:
        distinct, total = _vote(sources, fitted.weights, boost, first_row, depth, here, votes)
        for entry in range(distinct):
            chance = reach * votes.sums[entry] / total
            if votes.follows[entry]:
                next_row = sources.rows[votes.strongest[entry]] + depth
                chance *= copy_rate(slips, sources.places[next_row])
            if chance >= least and candidates < capacity:
                _keep(sources, votes, entry, node, depth, chance, here, offers, candidates)
                heap[size] = candidates
                sift_up(heap, chances, size)
                candidates, size = candidates + 1, size + 1
        # All that follows is less probable than the next, and costs as much or more.
        if (
            size == 0
            or nodes == worth.most
            or acceptance_scale * chances[heap[0]] < rate * worth.marginal[nodes]
        ):
            return best_count
        item, node = heap[0], nodes
        size, nodes = size - 1, nodes + 1
        heap[0] = heap[size]
        sift_down(heap, chances, size)
        tree.tokens[node], tree.parents[node] = offers.tokens[item], offers.parents[item]
        tree.chances[node], tree.kinds[node] = chances[item], offers.kinds[item]
        expected += acceptance_scale * chances[item]
        if expected - rate * seconds[nodes] > best_value:
            best_value, best_count = expected - rate * seconds[nodes], nodes
        depth, reach, first_row = offers.depths[item], chances[item], offers.first_rows[item]
        last_class = sources.classes[offers.tokens[item]]
        here = _behind(root, offers.anchors[item], offers.off_tracks[item], last_class)
