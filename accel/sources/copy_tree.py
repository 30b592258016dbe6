"""Best-first draft tree from copy rows.

At a node the rows that spell its path vote for the next token with ``exp(score)``, against the
escape weight of "something else". Matches grow along a path, and a path that leaves the believed
position or joins the original again is scored as the cursor would be scored there. The row at the
cursor votes with more where the output has followed it (``slips``).

How many nodes pay is decided while they are found. The best policy over many steps takes every node
that brings more tokens than its time would bring on the average of all steps, so the tree with the
largest value, expected tokens less ``rate`` times seconds, is taken. The best ratio of a single
step would stop too early where all is sure, and verify too much where nothing is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.sources import copy_rows
from accel.sources import slips as slips_of
from accel.sources.compiled import compiled_with
from accel.sources.copy_rows import (
    CLASSES,
    ESCAPE_AT,
    NOWHERE,
    ON_TRACK,
    REANCHOR_MATCH,
    RELATION_AT,
    SHIFTED,
    STATES,
    features_of,
    state_bucket,
)
from accel.sources.slips import FOLLOWING, kept, odds

NO_ROW = -1


@compiled_with(borrows=True)
def _push(heap: NDArray[np.int32], size: int, chance: NDArray[np.float64], item: int) -> None:
    slot = size
    while slot > 0:
        above = (slot - 1) >> 1
        if chance[heap[above]] >= chance[item]:
            break
        heap[slot] = heap[above]
        slot = above
    heap[slot] = item


@compiled_with(borrows=True)
def _pop(heap: NDArray[np.int32], size: int, chance: NDArray[np.float64]) -> int:
    top = heap[0]
    size -= 1
    item = heap[size]
    slot = 0
    while True:
        below = 2 * slot + 1
        if below >= size:
            break
        if below + 1 < size and chance[heap[below + 1]] > chance[heap[below]]:
            below += 1
        if chance[heap[below]] <= chance[item]:
            break
        heap[slot] = heap[below]
        slot = below
    heap[slot] = item
    return int(top)


@compiled_with(copy_rows, slips_of, forceinline=True)
def expand_rows(  # noqa: PLR0915 (compiled; one loop over arrays it would have to hand around)
    pool: NDArray[np.int32],
    match: NDArray[np.int32],
    offsets: NDArray[np.int32],
    rows: NDArray[np.int32],
    kinds: NDArray[np.int8],
    context_stop: int,
    anchor: int,
    off_track: int,
    last_class: int,
    lost_class: int,
    line_start: int,
    line_end: int,
    classes: NDArray[np.int8],
    weights: NDArray[np.float64],
    places: NDArray[np.int8],
    slips: NDArray[np.float64],
    at: int,
    out_token: NDArray[np.int32],
    out_parent: NDArray[np.int32],
    out_chance: NDArray[np.float32],
    out_kind: NDArray[np.int8],
    max_nodes: int,
    min_probability: float,
    seconds: NDArray[np.float64],
    slopes: NDArray[np.float64],
    trust: float,
    rate: float,
) -> int:
    """Write tokens, parents, path probabilities and kinds of at most ``max_nodes`` nodes; returns
    how many of them are the best tree.

    places, slips: as in ``slips``; at: the place of the pool that the cursor follows as the
    instruction says, -1 for none; seconds, slopes, trust: ``protocol.Prices``; rate: tokens per
    second of steps on the average, 0 to take all nodes.
    """
    row_count = len(rows)
    # Every candidate takes at least one row from its siblings, so this many can ever exist.
    capacity = (max_nodes + 1) * 4 + row_count
    token = np.empty(capacity, np.int32)
    parent = np.empty(capacity, np.int32)
    level = np.empty(capacity, np.int32)
    chance = np.empty(capacity, np.float64)
    kind_of = np.empty(capacity, np.int8)
    first_row = np.empty(capacity, np.int32)
    anchors = np.empty(capacity, np.int32)
    off_tracks = np.empty(capacity, np.int32)
    heap = np.empty(capacity, np.int32)
    next_row = np.empty(row_count, np.int32)
    values = np.empty(row_count, np.int32)
    votes = np.empty(row_count, np.float64)
    heads = np.empty(row_count, np.int32)
    strongest = np.empty(row_count, np.int32)
    strength = np.empty(row_count, np.float64)
    follows = np.empty(row_count, np.bool_)

    boost = odds(slips, FOLLOWING)
    expected = 1.0
    best_value = expected - rate * seconds[0]
    best_count = 0
    if rate > 0:
        # Growth ends before it comes to what is less probable than the cheapest node has to be.
        least = slopes[0]
        for node in range(1, max_nodes):
            least = min(least, slopes[node])
        min_probability = max(min_probability, rate * least / trust)
    for row in range(row_count):
        next_row[row] = row + 1 if row + 1 < row_count else NO_ROW
    candidates = 0
    size = 0
    nodes = 0
    at_row = 0 if row_count else NO_ROW
    node = -1
    depth = 0
    reach = 1.0
    here_anchor = anchor
    here_off = off_track
    here_class = last_class
    while True:
        distinct = 0
        at_root_anchor = here_anchor == anchor and here_off > 0
        start_break = line_start if at_root_anchor else NOWHERE
        end_break = line_end if at_root_anchor else NOWHERE
        total = np.exp(weights[ESCAPE_AT + state_bucket(here_off) * CLASSES + here_class])
        row = at_row
        while row != NO_ROW:
            following = next_row[row]
            position = rows[row]
            value = pool[position + depth]
            if value >= 0:
                first, second, third, fourth, fifth = features_of(
                    kinds[row], match[position] + depth, offsets[position + depth],
                    context_stop - position, classes[value], here_anchor, here_off,
                    here_class, lost_class, start_break, end_break,
                )  # fmt: skip
                score = weights[first] + weights[second] + weights[third]
                vote = np.exp(score + weights[fourth] + weights[fifth])
                on_track = (
                    kinds[row] <= SHIFTED
                    and RELATION_AT <= second < RELATION_AT + (ON_TRACK + 1) * STATES * 2
                )
                if position == at:
                    vote *= boost
                    on_track = True
                total += vote
                entry = 0
                while entry < distinct and values[entry] != value:
                    entry += 1
                if entry == distinct:
                    distinct += 1
                    values[entry] = value
                    votes[entry] = 0.0
                    heads[entry] = NO_ROW
                    strength[entry] = -1.0
                    follows[entry] = False
                votes[entry] += vote
                next_row[row] = heads[entry]
                heads[entry] = row
                is_led = follows[entry] and rows[strongest[entry]] == at
                if (on_track and not is_led) or (vote > strength[entry] and not follows[entry]):
                    strength[entry] = vote
                    strongest[entry] = row
                    follows[entry] = on_track
            row = following
        for entry in range(distinct):
            best = strongest[entry]
            probability = reach * votes[entry] / total
            if follows[entry]:
                probability *= kept(slips, places[rows[best] + depth])
            if probability < min_probability:
                continue
            if candidates == capacity:
                break
            item = candidates
            candidates += 1
            token[item] = values[entry]
            parent[item] = node
            level[item] = depth + 1
            chance[item] = probability
            kind_of[item] = kinds[best]
            first_row[item] = heads[entry]
            joined = kinds[best] <= SHIFTED and (
                follows[entry] or match[rows[best]] + depth + 1 >= REANCHOR_MATCH
            )
            if joined:
                anchors[item] = offsets[rows[best] + depth + 1]
                off_tracks[item] = 0
            else:
                anchors[item] = here_anchor
                off_tracks[item] = here_off + 1
            _push(heap, size, chance, item)
            size += 1
        if size == 0 or nodes == max_nodes:
            break
        # All that follows is less probable than the next, and costs as much or more.
        if trust * chance[heap[0]] < rate * slopes[nodes]:
            break
        item = _pop(heap, size, chance)
        size -= 1
        out_token[nodes] = token[item]
        out_parent[nodes] = parent[item]
        out_chance[nodes] = chance[item]
        out_kind[nodes] = kind_of[item]
        node = nodes
        nodes += 1
        expected += trust * chance[item]
        value = expected - rate * seconds[nodes]
        if value > best_value:
            best_value = value
            best_count = nodes
        depth = level[item]
        reach = chance[item]
        at_row = first_row[item]
        here_anchor = anchors[item]
        here_off = off_tracks[item]
        here_class = classes[token[item]]
    return best_count
