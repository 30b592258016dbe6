"""Steps of the default drafter, each in one call of compiled code: the accepted path is added to
the text, rows are looked up, and a tree is grown."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.drafting.retrieval.acceptance_model import (
    AcceptanceBuffers,
    AcceptanceWeights,
    fetch_weights,
)
from accel.drafting.retrieval.candidate_features import MAX_MATCH, Evidence, MatchRows, TextView
from accel.drafting.retrieval.nearby_tokens import fetch_surroundings
from accel.drafting.retrieval.prompt_index import link
from accel.drafting.retrieval.token_classes import TokenShapes
from accel.drafting.retrieval.tree_search import Frontier, Ground, TreeBuffers, grow
from accel.native.numba_cache import State, compiled

ARENA_NODES = 4096
"""Nodes of the trees in one arena."""

NOT_COMMITTED = -1

_ENTRY_ARGUMENTS = 7


class Committed(NamedTuple):
    """A path of the last tree that was right, and what came after it, not yet in the text. leaf:
    the path's last node or -1; own: the model's own token or -1."""

    tokens: TokenArray
    leaf: int
    own: int


class DraftingState(NamedTuple):
    """Arrays that growing reads and writes and that last from tree to tree: handing fifty arrays
    over takes longer than growing a small tree. saved: float64 [1], see ``draft_in``; entry: int64
    [2], see ``base.DirectIndex``, zeros for none; places: ``candidate_features.places_of`` the
    rows; arena: room for the arrays of ``DraftTree``s, one after another, of which four views take
    a third of the time of four copies."""

    shapes: TokenShapes
    evidence: Evidence
    weights: AcceptanceWeights
    scratch: AcceptanceBuffers
    frontier: Frontier
    tree: TreeBuffers
    text: TextView
    rows: MatchRows
    seconds: NDArray[np.float64]
    marginal: NDArray[np.float64]
    saved: NDArray[np.float64]
    arena: TreeBuffers
    entry: NDArray[np.int64]
    places: NDArray[np.int64]


@compiled()
def drafting_state_of(fields: DraftingState) -> State:
    """Return a state as one argument."""
    return State(fields)


@compiled()
def commit_in(arrays: Any, leaf: int, own: int, stop: int) -> int:
    """Add the path to ``leaf`` of the state's tree (-1: none) to the text, which ended at ``stop``,
    and ``own`` after it, -1 for nothing. Returns where the text ends now, ``NOT_COMMITTED`` where
    its array is too short.
    """
    state = arrays.fields
    tokens, previous, newest, _, _, spelt = state.text
    tree = state.tree
    length = 0
    node = leaf
    while node >= 0:
        length += 1
        node = tree.parents[node]
    count = length + (own >= 0)
    added = np.empty(count, np.int32)
    if own >= 0:
        added[length] = own
    node = leaf
    for index in range(length - 1, -1, -1):
        added[index] = tree.tokens[node]
        node = tree.parents[node]
    if stop + count > len(tokens):
        return NOT_COMMITTED
    for token in added:
        if token >= len(newest):
            return NOT_COMMITTED
    link(tokens, previous, newest, spelt, state.shapes.shapes, added, stop)
    return stop + count


@intrinsic
def _call_entry(
    _context: Any,
    address: Any,
    index: Any,
    context: Any,
    length: Any,
    positions: Any,
    max_match: Any,
    limit: Any,
    depth: Any,
) -> Any:
    """Call the function at ``address``, int64 all, see ``base.DirectIndex.entry``."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word] * _ENTRY_ARGUMENTS)
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(function, arguments[1:])

    assert len((index, context, length, positions, max_match, limit, depth)) == _ENTRY_ARGUMENTS
    return types.int64(*[types.int64] * (_ENTRY_ARGUMENTS + 1)), generate


@compiled()
def _look_up(
    state: DraftingState, start: int, stop: int, first: int, limit: int, depth: int
) -> int:
    """Have the index write its rows after the ``first``; returns how many there are then."""
    if state.entry[0] == 0:
        return first
    tokens, rows = state.text.tokens, state.rows
    length = min(stop - start, MAX_MATCH)
    positions = np.empty(len(state.places), np.int64)
    for index in range(len(positions)):
        positions[index] = state.places[index]
    positions[0] += first * rows.tokens.shape[1] * rows.tokens.itemsize
    positions[1] += first * rows.lengths.itemsize
    positions[2] += first * rows.counts.itemsize
    positions[3] += first * rows.sources.itemsize
    positions[4] -= first
    return first + _call_entry(
        state.entry[0],
        state.entry[1],
        tokens.ctypes.data + (stop - length) * tokens.itemsize,
        length,
        positions.ctypes.data,
        MAX_MATCH,
        limit,
        depth,
    )


@compiled()
def draft_in(
    arrays: Any,
    leaf: int,
    own: int,
    start: int,
    stop: int,
    first_rows: int,
    limit: int,
    depth: int,
    accepted: int,
    max_nodes: int,
    acceptance_scale: float,
    arena_start: int,
) -> int:
    """``commit_in`` what the last step accepted, if anything, look up and ``grow``.

    The tree is in ``state.arena`` from ``arena_start`` on; returns how many nodes it has,
    ``NOT_COMMITTED`` where that failed. ``state.saved`` has the seconds it is expected to save.
    """
    if leaf >= 0 or own >= 0:
        stop = commit_in(arrays, leaf, own, stop)
        if stop < 0:
            return NOT_COMMITTED
    state = arrays.fields
    tokens, previous, newest, _, _, spelt = state.text
    text, tree = TextView(tokens, previous, newest, start, stop, spelt), state.tree
    # After a forward all this is out of the caches: it comes while the index is looked up.
    fetch_surroundings(text, state.evidence)
    fetch_weights(state.weights)
    row_count = _look_up(state, start, stop, first_rows, limit, depth)
    ground = Ground(
        *(text, state.rows, state.shapes, accepted, state.evidence, state.weights),
        *(state.scratch, state.frontier, tree),
    )
    count = grow(ground, row_count, max_nodes, state.seconds, state.marginal, acceptance_scale)
    expected, seconds, arena = 0.0, state.seconds, state.arena
    for node in range(count):
        expected += tree.probabilities[node]
        arena.tokens[arena_start + node] = tree.tokens[node]
        arena.parents[arena_start + node] = tree.parents[node]
        arena.probabilities[arena_start + node] = tree.probabilities[node]
        arena.sources[arena_start + node] = tree.sources[node]
    state.saved[0] = acceptance_scale * expected * seconds[0] - (seconds[count] - seconds[0])
    return count
