"""The tree of most probable paths, node by node: evidence, probabilities, next node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel import lanes
from accel.draft_tree import TokenArray
from accel.sources import acceptance, calibration, expansion
from accel.sources import evidence as evidence_of
from accel.sources import surroundings as surroundings_of
from accel.sources.acceptance import (
    Floats,
    Scratch,
    Weights,
    hidden_of_near,
    probabilities_of,
)
from accel.sources.calibration import depth_group
from accel.sources.compiled import compiled_with
from accel.sources.evidence import (
    Evidence,
    Rows,
    Text,
    forget,
    gather,
)
from accel.sources.expansion import sift_down, sift_up
from accel.sources.surroundings import note_surroundings
from accel.sources.token_shapes import TokenShapes

MAX_DEPTH = 48
LEAST_PROBABILITY = 0.001
"""Paths below are not kept: they would have no place in a tree of a hundred nodes."""
WIDE = 0.08
"""Nodes at least as probable may be followed by tokens that merely stand near."""
MAX_KEPT = 8192


class Frontier(NamedTuple):
    """Candidates of all nodes, most probable first through ``heap``.

    rows: int32, first row of each candidate's list; matches: int16, longest match.
    """

    tokens: TokenArray
    parents: TokenArray
    depths: TokenArray
    rows: TokenArray
    matches: TokenArray
    sources: NDArray[np.int8]
    probabilities: NDArray[np.float64]
    heap: TokenArray

    @classmethod
    def room(cls) -> Frontier:
        """New room."""
        return cls(
            np.empty(MAX_KEPT, np.int32),
            np.empty(MAX_KEPT, np.int32),
            np.empty(MAX_KEPT, np.int32),
            np.empty(MAX_KEPT, np.int32),
            np.empty(MAX_KEPT, np.int32),
            np.empty(MAX_KEPT, np.int8),
            np.empty(MAX_KEPT, np.float64),
            np.empty(MAX_KEPT, np.int32),
        )


class Tree(NamedTuple):
    """The nodes of a tree as they come out: arrays of ``DraftTree``, and matches: int32."""

    tokens: TokenArray
    parents: TokenArray
    probabilities: Floats
    sources: NDArray[np.int8]
    matches: TokenArray

    @classmethod
    def room(cls, nodes: int) -> Tree:
        """Room for ``nodes``."""
        return cls(
            np.empty(nodes, np.int32),
            np.empty(nodes, np.int32),
            np.empty(nodes, np.float32),
            np.empty(nodes, np.int8),
            np.empty(nodes, np.int32),
        )


@njit(nogil=True, cache=True, inline="always")
def describe(
    state: Floats, depth: int, path: float, conditional: float, wide: bool, accepted: int
) -> None:
    """Write the state of a node: root, depth, how sure the path and its last token were, whether
    tokens that stand near are candidates, and how many tokens the last tree brought."""
    state[0] = 1.0 if depth == 0 else 0.0
    state[1] = min(depth, 16) / 8
    state[2] = np.log(max(path, 1e-4)) / 4
    state[3] = np.log(max(conditional, 1e-3)) / 2
    state[4] = 1.0 if wide else 0.0
    state[5] = min(accepted, 16) / 8


@compiled_with(evidence_of, forceinline=True, borrows=True)
def write_path(text: Text, tokens: TokenArray, parents: TokenArray, node: int, depth: int) -> None:
    """Write the tokens from the root to ``node`` behind the text."""
    place = text.stop + depth - 1
    while node >= 0:
        text.tokens[place] = tokens[node]
        place -= 1
        node = parents[node]


@compiled_with(acceptance, evidence_of, expansion, forceinline=True, borrows=True)
def _offer(
    frontier: Frontier,
    waiting: int,
    kept: int,
    node: int,
    depth: int,
    path: float,
    evidence: Evidence,
    count: int,
    probabilities: Floats,
    least: float,
) -> int:
    """Put the candidates of ``node`` on the frontier that are ``least`` probable at least; returns
    how many were."""
    added = 0
    for slot in range(count):
        chance = path * probabilities[slot]
        item = kept + added
        if chance < least or item == MAX_KEPT:
            continue
        frontier.tokens[item] = evidence.tokens[slot]
        frontier.parents[item] = node
        frontier.depths[item] = depth + 1
        frontier.rows[item] = evidence.heads[slot]
        frontier.matches[item] = evidence.best[slot]
        frontier.sources[item] = evidence.sources[slot]
        frontier.probabilities[item] = chance
        frontier.heap[waiting + added] = item
        sift_up(frontier.heap, frontier.probabilities, waiting + added)
        added += 1
    return added


@compiled_with(expansion, forceinline=True, borrows=True)
def _take(frontier: Frontier, left: int) -> int:
    """Take the most probable candidate off the frontier; ``left`` remain."""
    best = frontier.heap[0]
    if left:
        frontier.heap[0] = frontier.heap[left]
        sift_down(frontier.heap, frontier.probabilities, left)
    return best


@compiled_with(
    acceptance,
    calibration,
    evidence_of,
    expansion,
    lanes,
    surroundings_of,
    forceinline=True,
    borrows=True,
)
def grow(  # noqa: PLR0915
    text: Text,
    rows: Rows,
    row_count: int,
    shapes: TokenShapes,
    accepted: int,
    evidence: Evidence,
    weights: Weights,
    corrections: Floats,
    scratch: Scratch,
    frontier: Frontier,
    tree: Tree,
    max_nodes: int,
    seconds: NDArray[np.float64],
    slopes: NDArray[np.float64],
    trust: float,
) -> int:
    """Write the nodes of the best tree in decreasing path probability; returns how many.

    ``row_count``: how many of ``rows`` there are; ``accepted``: tokens that the last tree brought.
    For the rest see ``protocol.Prices``. The best tree is the one with the most expected tokens per
    second; growth ends where no larger one can be better.
    """
    expected = 1.0
    best_rate = expected / seconds[0]
    best_count = 0
    # Growth ends before it comes to what is less probable than the cheapest node has to be.
    least = slopes[0]
    for count in range(1, max_nodes):
        least = min(least, slopes[count])
    least = max(least * best_rate / trust, LEAST_PROBABILITY)
    probabilities = scratch.probabilities
    state = scratch.state
    surroundings = note_surroundings(text, shapes, evidence)
    hidden_of_near(weights, evidence, surroundings, scratch)
    for row in range(row_count):
        rows.following[row] = row + 1 if row + 1 < row_count else -1
    kept = 0
    waiting = 0
    nodes = 0
    node = -1
    depth = 0
    path = 1.0
    conditional = 1.0
    first_row = 0 if row_count else -1
    while nodes < max_nodes:
        if depth < MAX_DEPTH:
            write_path(text, tree.tokens, tree.parents, node, depth)
            wide = path >= WIDE
            near = surroundings if wide else 0
            count = gather(text, depth, rows, first_row, shapes, near, evidence)
            describe(state, depth, path, conditional, wide, accepted)
            last = text.tokens[text.stop + depth - 1]
            probabilities_of(
                weights,
                corrections[depth_group(depth + 1)],
                evidence,
                count,
                shapes.shapes,
                shapes.shapes[last] if last < len(shapes.shapes) else 0,
                state,
                scratch,
                probabilities,
            )
            added = _offer(
                frontier, waiting, kept, node, depth, path, evidence, count, probabilities, least
            )
            waiting += added
            kept += added
            forget(evidence, count)
        if waiting == 0:
            break
        # All that follows is less probable than the next, and costs as much or more.
        if trust * frontier.probabilities[frontier.heap[0]] < best_rate * slopes[nodes]:
            break
        waiting -= 1
        best = _take(frontier, waiting)
        parent = frontier.parents[best]
        path = frontier.probabilities[best]
        conditional = path / (tree.probabilities[parent] if parent >= 0 else 1.0)
        tree.tokens[nodes] = frontier.tokens[best]
        tree.parents[nodes] = parent
        tree.probabilities[nodes] = path
        tree.sources[nodes] = frontier.sources[best]
        tree.matches[nodes] = frontier.matches[best]
        node = nodes
        depth = frontier.depths[best]
        first_row = frontier.rows[best]
        nodes += 1
        expected += trust * path
        if expected > best_rate * seconds[nodes]:
            best_rate = expected / seconds[nodes]
            best_count = nodes
    return best_count
