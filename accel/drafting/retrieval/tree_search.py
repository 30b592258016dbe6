"""The tree of most probable paths, node by node: evidence, probabilities, next node."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.drafting.heap import sift_down, sift_up
from accel.drafting.retrieval.acceptance_model import (
    AcceptanceBuffers,
    AcceptanceWeights,
    Floats,
    hidden_of_near,
    probabilities_of,
)
from accel.drafting.retrieval.candidate_features import (
    Evidence,
    MatchRows,
    TextView,
    forget,
    gather,
)
from accel.drafting.retrieval.nearby_tokens import note_surroundings
from accel.drafting.retrieval.token_classes import TokenShapes
from accel.native.numba_cache import compiled

# Measure with `python -m tests.benchmarks completion --cases CASES/completion_repoeval.jsonl`.
MAX_DEPTH = 48
LEAST_PROBABILITY = 0.001
"""Less likely paths are dropped: they would have no place in a tree of a hundred nodes."""
WIDE = 0.08
"""Nodes at least as probable may be followed by tokens that are merely near."""
MAX_PATHS = 8192


class Frontier(NamedTuple):
    """Candidates of all nodes, most probable first through ``heap``. rows: int32, first row of each
    candidate's list."""

    tokens: TokenArray
    parents: TokenArray
    depths: TokenArray
    rows: TokenArray
    sources: NDArray[np.int8]
    probabilities: NDArray[np.float64]
    heap: TokenArray

    @classmethod
    def allocate(cls) -> Frontier:
        """Allocate the arrays."""
        numbers: tuple[Any, ...] = *[np.int32] * 4, np.int8, np.float64, np.int32
        return cls(*(np.empty(MAX_PATHS, dtype) for dtype in numbers))


class TreeBuffers(NamedTuple):
    """The nodes of a tree as they come out: arrays of ``DraftTree``."""

    tokens: TokenArray
    parents: TokenArray
    probabilities: Floats
    sources: NDArray[np.int8]

    @classmethod
    def allocate(cls, nodes: int) -> TreeBuffers:
        """Return room for ``nodes``."""
        numbers: tuple[Any, ...] = np.int32, np.int32, np.float32, np.int8
        return cls(*(np.empty(nodes, dtype) for dtype in numbers))


class Ground(NamedTuple):
    """The inputs and buffers of a tree's growth. accepted: tokens that the last tree
    added."""

    text: TextView
    rows: MatchRows
    shapes: TokenShapes
    accepted: int
    evidence: Evidence
    weights: AcceptanceWeights
    scratch: AcceptanceBuffers
    frontier: Frontier
    tree: TreeBuffers


class NodeContext(NamedTuple):
    """The node at which a tree is grown, -1 for the root; its depth; the probability of its path,
    as it is and by retrieval alone, and of its last token; and the first row that spells it, -1 for
    none."""

    node: int
    depth: int
    path: float
    alone: float
    conditional: float
    first_row: int


@njit(nogil=True, inline="always")
def describe(
    state: Floats, depth: int, path: float, conditional: float, wide: bool, accepted: int
) -> None:
    """Write the state of a node: root, depth, how sure the path and its last token were, whether
    tokens that are near are candidates, and how many tokens the last tree added."""
    state[0] = 1.0 if depth == 0 else 0.0
    state[1] = min(depth, 16) / 8
    state[2] = np.log(max(path, 1e-4)) / 4
    state[3] = np.log(max(conditional, 1e-3)) / 2
    state[4] = 1.0 if wide else 0.0
    state[5] = min(accepted, 16) / 8


@compiled(forceinline=True, borrows=True)
def write_path(
    text: TextView, tokens: TokenArray, parents: TokenArray, node: int, depth: int
) -> None:
    """Write the tokens from the root to ``node`` after the text."""
    position = text.stop + depth - 1
    while node >= 0:
        text.tokens[position] = tokens[node]
        position -= 1
        node = parents[node]


@compiled(forceinline=True, borrows=True, inner=True)
def begin(ground: Ground, row_count: int) -> int:
    """Look at what is near the text's end, and make one list of the first ``row_count`` rows;
    returns how many tokens are near."""
    near = note_surroundings(ground.text, ground.shapes, ground.evidence)
    hidden_of_near(ground.weights, ground.evidence, near, ground.scratch)
    following = ground.rows.following
    for row in range(row_count):
        following[row] = row + 1 if row + 1 < row_count else -1
    return near


@compiled(forceinline=True, borrows=True)
def least_of(marginal: NDArray[np.float64], nodes: int, worth_s: float) -> float:
    """Return the least probability of a node's path, with an expected token worth ``worth_s``
    seconds: growth ends before paths less probable than the cheapest of ``nodes`` more nodes
    needs."""
    least = marginal[0]
    for count in range(1, nodes):
        least = min(least, marginal[count])
    return max(least / worth_s, LEAST_PROBABILITY)


@compiled(forceinline=True, borrows=True, inner=True)
def find_at(ground: Ground, context: NodeContext, near: int) -> int:
    """Find what may follow a node, and write its probabilities to ``scratch.probabilities``;
    returns how many tokens that are, which stay in the ground's evidence until it forgets them."""
    text, tree, shapes, scratch = ground.text, ground.tree, ground.shapes, ground.scratch
    write_path(text, tree.tokens, tree.parents, context.node, context.depth)
    wide = context.path >= WIDE
    standing = near if wide else 0
    count: int = gather(
        text, context.depth, ground.rows, context.first_row, shapes, standing, ground.evidence
    )
    describe(
        scratch.state, context.depth, context.alone, context.conditional, wide, ground.accepted
    )
    last = text.tokens[text.stop + context.depth - 1]
    probabilities_of(
        ground.weights,
        ground.evidence,
        count,
        shapes.shapes,
        shapes.shapes[last] if last < len(shapes.shapes) else 0,
        scratch.state,
        scratch,
        scratch.probabilities,
    )
    return count


@compiled(forceinline=True, borrows=True, inner=True)
def _offer(
    ground: Ground, context: NodeContext, count: int, least: float, waiting: int, stored: int
) -> int:
    """Put what may follow a node on the frontier where it is ``least`` probable at least; returns
    how many were."""
    frontier, evidence, added = ground.frontier, ground.evidence, 0
    for slot in range(count):
        chance = context.path * ground.scratch.probabilities[slot]
        item = stored + added
        if chance < least or item == MAX_PATHS:
            continue
        frontier.tokens[item], frontier.parents[item] = evidence.tokens[slot], context.node
        frontier.depths[item], frontier.rows[item] = context.depth + 1, evidence.heads[slot]
        frontier.sources[item] = evidence.sources[slot]
        frontier.probabilities[item] = chance
        frontier.heap[waiting + added] = item
        sift_up(frontier.heap, frontier.probabilities, waiting + added)
        added += 1
    return added


@compiled(forceinline=True, borrows=True)
def take(frontier: Frontier, remaining: int) -> int:
    """Take the most probable candidate off the frontier; ``remaining`` remain."""
    best = frontier.heap[0]
    if remaining:
        frontier.heap[0] = frontier.heap[remaining]
        sift_down(frontier.heap, frontier.probabilities, remaining)
    return best


@compiled(forceinline=True, borrows=True, inner=True)
def grow(
    ground: Ground,
    row_count: int,
    max_nodes: int,
    seconds: NDArray[np.float64],
    marginal: NDArray[np.float64],
    acceptance_scale: float,
) -> int:
    """Write the nodes of the best tree in decreasing path probability; returns how many.

    ``row_count``: how many of the rows there are. For the rest see ``base.VerifyCosts``. The best
    tree is the one with the most expected tokens per second; growth ends where no larger one can be
    better.
    """
    frontier, tree = ground.frontier, ground.tree
    expected, best_rate, best_count = 1.0, 1.0 / seconds[0], 0
    least = least_of(marginal, max_nodes, acceptance_scale / best_rate)
    near = begin(ground, row_count)
    stored = waiting = nodes = 0
    context = NodeContext(-1, 0, 1.0, 1.0, 1.0, 0 if row_count else -1)
    while nodes < max_nodes:
        if context.depth < MAX_DEPTH:
            count = find_at(ground, context, near)
            added = _offer(ground, context, count, least, waiting, stored)
            waiting, stored = waiting + added, stored + added
            forget(ground.evidence, count)
        # All that follows is less probable than the next, and costs as much or more.
        if (
            waiting == 0
            or acceptance_scale * frontier.probabilities[frontier.heap[0]]
            < best_rate * marginal[nodes]
        ):
            break
        waiting -= 1
        best = take(frontier, waiting)
        parent, path = frontier.parents[best], frontier.probabilities[best]
        conditional = path / (tree.probabilities[parent] if parent >= 0 else 1.0)
        tree.tokens[nodes], tree.parents[nodes] = frontier.tokens[best], parent
        tree.probabilities[nodes], tree.sources[nodes] = path, frontier.sources[best]
        depth, first_row = frontier.depths[best], frontier.rows[best]
        context = NodeContext(nodes, np.int64(depth), path, path, conditional, np.int64(first_row))
        nodes += 1
        expected += acceptance_scale * path
        if expected > best_rate * seconds[nodes]:
            best_rate, best_count = expected / seconds[nodes], nodes
    return best_count
