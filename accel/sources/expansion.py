"""Weighted continuation rows to a draft tree, best first by path probability.

At a node the rows that spell its path vote for the next token with their weight. A child has the
probability of its parent times its share of the votes, discounted by how much there is to go on:
``share * total / (total + escape)``, where ``escape`` is the weight of "none of them". Nodes are
taken in decreasing path probability, so every prefix of the tree is the best tree of its size.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, TokenArray
from accel.sources.compiled import compiled_with

NO_ROW = -1


@compiled_with(borrows=True)
def sift_up(heap: NDArray[np.int32], probabilities: NDArray[np.float64], slot: int) -> None:
    """Restore the heap after ``heap[slot]`` was added: most probable first, older first."""
    item = heap[slot]
    while slot > 0:
        above = (slot - 1) >> 1
        other = heap[above]
        if probabilities[other] >= probabilities[item]:
            break
        heap[slot] = other
        slot = above
    heap[slot] = item


@compiled_with(borrows=True)
def sift_down(heap: NDArray[np.int32], probabilities: NDArray[np.float64], size: int) -> None:
    """Restore the heap of ``size`` items after ``heap[0]`` was replaced."""
    item = heap[0]
    slot = 0
    while True:
        below = 2 * slot + 1
        if below >= size:
            break
        right = below + 1
        if right < size:
            left_p = probabilities[heap[below]]
            right_p = probabilities[heap[right]]
            if right_p > left_p or (right_p == left_p and heap[right] < heap[below]):
                below = right
        other = heap[below]
        better = probabilities[other] > probabilities[item]
        older = probabilities[other] == probabilities[item] and other < item
        if not (better or older):
            break
        heap[slot] = other
        slot = below
    heap[slot] = item


@njit(nogil=True, cache=True)
def _expand(  # noqa: PLR0915
    rows: TokenArray,
    weights: NDArray[np.float64],
    sources: NDArray[np.int8],
    escape: float,
    max_nodes: int,
    max_children: int,
    min_probability: float,
) -> tuple[TokenArray, TokenArray, NDArray[np.float32], NDArray[np.int8]]:
    row_count, depth = rows.shape
    capacity = max_nodes * max_children + max_children
    # A candidate is a possible node: it holds a linked list of the rows that spell its path.
    token = np.empty(capacity, np.int32)
    parent = np.empty(capacity, np.int32)
    level = np.empty(capacity, np.int32)
    probability = np.empty(capacity, np.float64)
    source = np.empty(capacity, np.int8)
    first_row = np.empty(capacity, np.int32)
    heap = np.empty(capacity, np.int32)
    next_row = np.empty(row_count, np.int32)
    # Votes of one node, by token: an open-addressing table and the order of first appearance.
    bits = 1
    while (1 << bits) < 2 * row_count:
        bits += 1
    mask = (1 << bits) - 1
    table = np.full(mask + 1, -1, np.int32)
    voted = np.empty(row_count, np.int32)
    slots = np.empty(row_count, np.int32)
    votes = np.empty(row_count, np.float64)
    heads = np.empty(row_count, np.int32)
    strongest = np.empty(row_count, np.float64)
    voice = np.empty(row_count, np.int8)

    out_token = np.empty(max_nodes, np.int32)
    out_parent = np.empty(max_nodes, np.int32)
    out_probability = np.empty(max_nodes, np.float32)
    out_source = np.empty(max_nodes, np.int8)

    for row in range(row_count):
        next_row[row] = row + 1 if row + 1 < row_count else NO_ROW
    candidates = 0
    heap_size = 0
    nodes = 0
    at_node = -1
    at_level = 0
    at_probability = 1.0
    at_row = 0 if row_count else NO_ROW
    while True:
        if at_level < depth:
            distinct = 0
            total = 0.0
            row = at_row
            while row != NO_ROW:
                following = next_row[row]
                value = rows[row, at_level]
                if value >= 0:
                    weight = weights[row]
                    total += weight
                    slot = (value * 40503) & mask
                    while table[slot] >= 0 and voted[table[slot]] != value:
                        slot = (slot + 1) & mask
                    entry = table[slot]
                    if entry < 0:
                        entry = distinct
                        distinct += 1
                        table[slot] = entry
                        voted[entry] = value
                        slots[entry] = slot
                        votes[entry] = 0.0
                        heads[entry] = NO_ROW
                        strongest[entry] = -1.0
                    votes[entry] += weight
                    next_row[row] = heads[entry]
                    heads[entry] = row
                    if weight > strongest[entry]:
                        strongest[entry] = weight
                        voice[entry] = sources[row]
                row = following
            for entry in range(distinct):
                table[slots[entry]] = -1
            for _ in range(min(distinct, max_children)):
                best = 0
                for entry in range(1, distinct):
                    if votes[entry] > votes[best]:
                        best = entry
                if votes[best] <= 0.0:
                    break
                chance = at_probability * votes[best] / (total + escape)
                votes[best] = -1.0
                if chance < min_probability:
                    break
                token[candidates] = voted[best]
                parent[candidates] = at_node
                level[candidates] = at_level + 1
                probability[candidates] = chance
                source[candidates] = voice[best]
                first_row[candidates] = heads[best]
                heap[heap_size] = candidates
                sift_up(heap, probability, heap_size)
                heap_size += 1
                candidates += 1
        if heap_size == 0 or nodes == max_nodes:
            break
        best = heap[0]
        heap_size -= 1
        if heap_size:
            heap[0] = heap[heap_size]
            sift_down(heap, probability, heap_size)
        out_token[nodes] = token[best]
        out_parent[nodes] = parent[best]
        out_probability[nodes] = probability[best]
        out_source[nodes] = source[best]
        at_node = nodes
        at_level = level[best]
        at_probability = probability[best]
        at_row = first_row[best]
        nodes += 1
    return out_token[:nodes], out_parent[:nodes], out_probability[:nodes], out_source[:nodes]


def expand(
    rows: TokenArray,
    weights: NDArray[np.float64],
    sources: NDArray[np.int8],
    *,
    max_nodes: int,
    escape: float = 2.0,
    max_children: int = 8,
    min_probability: float = 0.0,
) -> DraftTree:
    """A tree of at most ``max_nodes`` nodes from weighted rows.

    rows: int32 [n, depth], padded with -1; weights: float64 [n], positive; sources: int8 [n].
    ``escape`` is the weight of a continuation that no row knows. A node's source is that of the
    row with the greatest weight that spells it.
    """
    if max_nodes <= 0 or not len(rows):
        return DraftTree.empty()
    return DraftTree(
        *_expand(
            np.ascontiguousarray(rows, np.int32),
            np.ascontiguousarray(weights, np.float64),
            np.ascontiguousarray(sources, np.int8),
            float(escape),
            int(max_nodes),
            int(max_children),
            float(min_probability),
        )
    )


def warm_up() -> None:
    """Compile (or load the compiled form of) the expansion."""
    expand(np.zeros((2, 2), np.int32), np.ones(2), np.zeros(2, np.int8), max_nodes=2)
