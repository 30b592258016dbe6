"""Growth of one tree from retrieval and mask rows that knows what verifying costs, in one call.

The trees are those of ``joint_tree``, grown as far as ``best_first`` grows them: until no larger
one can bring more tokens per second. The same call shares out the mask rows of the next forward.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.experimental import structref
from numpy.typing import NDArray

from accel import lanes, mask_planner, matmul
from accel.draft_tree import Source, TokenArray
from accel.mask_planner import share_rows
from accel.matmul import multiply, narrow
from accel.sources import (
    acceptance,
    best_first,
    calibration,
    evidence,
    expansion,
    pooling,
    sampler,
)
from accel.sources import surroundings as surroundings_of
from accel.sources.acceptance import Floats, hidden_of_near, probabilities_of
from accel.sources.best_first import (
    LEAST_PROBABILITY,
    MAX_DEPTH,
    MAX_KEPT,
    WIDE,
    describe,
    write_path,
)
from accel.sources.calibration import depth_group
from accel.sources.compiled import FieldsType, compiled_with
from accel.sources.evidence import MAX_CANDIDATES, Text, forget, gather
from accel.sources.expansion import sift_down, sift_up
from accel.sources.guesses import LEAST_SAMPLED, MOST_SAMPLED
from accel.sources.pooling import pool
from accel.sources.sampler import Noted, Tables, note_rows, remember, write_chances
from accel.sources.surroundings import note_surroundings

UNKNOWN = 1e-4
"""What retrieval gives a token that it does not know."""

_ADAPTIVE = np.int8(Source.ADAPTIVE)


class Space(NamedTuple):
    """Room for one tree. memories: float32 [MOST_SAMPLED, >= width]; stored: int16 [rows, width];
    chances, pooled: float32 [shortlist]; pooled_known: float32 [MAX_CANDIDATES]; memory_of: int32
    and alone: float32 [MAX_KEPT], of candidates."""

    memories: Floats
    stored: NDArray[np.int16]
    chances: Floats
    pooled: Floats
    pooled_known: Floats
    memory_of: TokenArray
    alone: Floats


class Outcome(NamedTuple):
    """What the room's tree does not hold. chances: float32 and shown: int8 [nodes], the tree as
    both have it; places, sizes: int32 [nodes + 1], groups of mask rows, the root -1; facts:
    float64 [3], groups, seconds saved, and accepted tokens that are expected of those nodes which
    had to make room for guesses. A node's source is adaptive where retrieval alone would not have
    drafted it."""

    chances: Floats
    shown: NDArray[np.int8]
    places: TokenArray
    sizes: TokenArray
    facts: NDArray[np.float64]


@structref.register
class _AheadType(FieldsType):
    """Compiled form of ``Ahead``."""


class Ahead(structref.StructRefProxy):
    """All that mask rows add to growing, as one argument, see ``mixture_room.Room``."""


structref.define_proxy(Ahead, _AheadType, ["tables", "noted", "space", "outcome", "shares"])


@njit(cache=True)
def _ahead_of(
    tables: Tables, noted: Noted, space: Space, outcome: Outcome, shares: NDArray[np.float64]
) -> Ahead:
    return Ahead(tables, noted, space, outcome, shares)


def ahead_of(tables: Tables, shares: NDArray[np.float64], noted: Noted, outcome: Outcome) -> Ahead:
    """What growing takes. shares: float64 [masks], what each row of a group brings of all."""
    masks, width = len(noted.scores), tables.by_token.shape[1]
    wide, listed = noted.known.shape[1], len(noted.tokens)
    space = Space(
        np.zeros((MOST_SAMPLED, wide), np.float32),
        np.zeros((max(masks, 1), width), np.int16),
        np.zeros(listed, np.float32),
        np.zeros(listed, np.float32),
        np.zeros(MAX_CANDIDATES, np.float32),
        np.zeros(MAX_KEPT, np.int32),
        np.zeros(MAX_KEPT, np.float32),
    )
    ahead: Ahead = _ahead_of(tables, noted, space, outcome, shares)
    return ahead


def outcome_room(nodes: int) -> Outcome:
    """Room for trees of so many nodes."""
    return Outcome(
        np.zeros(nodes, np.float32),
        np.zeros(nodes, np.int8),
        np.zeros(nodes + 1, np.int32),
        np.zeros(nodes + 1, np.int32),
        np.zeros(3),
    )


@compiled_with(lanes, matmul, sampler)
def note_in(ahead: Any, logits: Floats, states: Floats, token: int, last_token: int) -> None:
    """``sampler.note_rows`` into what ``ahead`` holds."""
    stored = ahead.space.stored
    note_rows(ahead.tables, ahead.noted, stored, logits, states, token, last_token)


@compiled_with(
    acceptance,
    best_first,
    calibration,
    evidence,
    expansion,
    lanes,
    mask_planner,
    matmul,
    pooling,
    sampler,
    surroundings_of,
)
def grow_joint_in(  # noqa: PLR0915
    room: Any,
    ahead: Any,
    start: int,
    stop: int,
    row_count: int,
    accepted: int,
    max_nodes: int,
    trust: float,
    gain: float,
    cost_s: float,
) -> int:
    """Write the best tree into ``room`` as retrieval alone has it, and into the outcome of
    ``ahead`` as both do; returns how many nodes are worth it.

    As ``mixture_room.draft_in``. gain: accepted tokens that all rows of a group bring, 0 where no
    mask rows are to hang; cost_s: seconds that using a group takes.
    """
    buffer, previous, newest, _, _, spelt = room.text
    text = Text(buffer, previous, newest, start, stop, spelt)
    rows, shapes, found = room.rows, room.shapes, room.evidence
    weights, corrections, scratch = room.weights, room.corrections, room.scratch
    frontier, tree, seconds, slopes = room.frontier, room.tree, room.seconds, room.slopes
    tables, noted, space, outcome = ahead.tables, ahead.noted, ahead.space, ahead.outcome
    masks, listed = noted.counts[0], noted.counts[1]
    tokens = noted.tokens[:listed]
    chances, pooled = space.chances[:listed], space.pooled[:listed]
    pooled_known, memory_of, alone_of = space.pooled_known, space.memory_of, space.alone
    memories, stored = space.memories, space.stored
    width = tables.by_token.shape[1]
    expected = 1.0
    best_rate = expected / seconds[0]
    least = slopes[0]
    for count in range(1, max_nodes):
        least = min(least, slopes[count])
    least = max(least * best_rate / trust, LEAST_PROBABILITY)
    probabilities = scratch.probabilities
    state = scratch.state
    surroundings = note_surroundings(text, shapes, found)
    hidden_of_near(weights, found, surroundings, scratch)
    for row in range(row_count):
        rows.following[row] = row + 1 if row + 1 < row_count else -1
    kept = waiting = nodes = sampled = 0
    node, depth, memory = -1, 0, -1
    path = alone = conditional = 1.0
    first_row = 0 if row_count else -1
    while nodes < max_nodes:
        if depth < MAX_DEPTH:
            write_path(text, tree.tokens, tree.parents, node, depth)
            wide = path >= WIDE
            near = surroundings if wide else 0
            count = gather(text, depth, rows, first_row, shapes, near, found)
            describe(state, depth, alone, conditional, wide, accepted)
            last = buffer[stop + depth - 1]
            probabilities_of(
                weights,
                corrections[depth_group(depth + 1)],
                found,
                count,
                shapes.shapes,
                shapes.shapes[last] if last < len(shapes.shapes) else 0,
                state,
                scratch,
                probabilities,
            )
            may_sample = depth < masks and (depth == 0 or memory >= 0) and sampled < MOST_SAMPLED
            is_sampled = may_sample and path >= LEAST_SAMPLED
            if is_sampled:
                own = memories[sampled]
                if depth == 0:
                    own[:] = 0
                else:
                    for i in range(width):
                        stored[0, i] = narrow(memories[memory, i], stored)
                    matrix = tables.memory
                    multiply(
                        stored, 0, 1, matrix, len(matrix), matrix.shape[1], memories[sampled:], 0
                    )
                before = noted.counts[2] if depth == 0 else last
                remember(noted.known, depth, tables.by_token, before, own)
                write_chances(noted.scores, depth, tables.by_memory, tokens, listed, own, chances)
                pool(
                    tables.pooling,
                    depth,
                    tokens,
                    chances,
                    found.tokens[:count],
                    found.best[:count],
                    probabilities[:count],
                    pooled,
                    pooled_known[:count],
                )
            here_memory = sampled if is_sampled else -1
            for item in range(count + (listed if is_sampled else 0)):
                is_known = item < count
                if is_known:
                    chance = path * (pooled_known[item] if is_sampled else probabilities[item])
                else:
                    chance = path * pooled[item - count]
                if chance < least or kept == MAX_KEPT:
                    continue
                frontier.parents[kept], frontier.depths[kept] = node, depth + 1
                frontier.probabilities[kept] = chance
                memory_of[kept] = here_memory
                if is_known:
                    frontier.tokens[kept] = found.tokens[item]
                    frontier.rows[kept] = found.heads[item]
                    frontier.matches[kept] = found.best[item]
                    frontier.sources[kept] = found.sources[item]
                    alone_of[kept] = alone * probabilities[item]
                else:
                    frontier.tokens[kept] = tokens[item - count]
                    frontier.rows[kept] = -1
                    frontier.matches[kept] = 0
                    frontier.sources[kept] = _ADAPTIVE
                    alone_of[kept] = alone * UNKNOWN
                frontier.heap[waiting] = kept
                sift_up(frontier.heap, frontier.probabilities, waiting)
                kept += 1
                waiting += 1
            sampled += is_sampled
            forget(found, count)
        if waiting == 0:
            break
        if trust * frontier.probabilities[frontier.heap[0]] < best_rate * slopes[nodes]:
            break
        waiting -= 1
        best = frontier.heap[0]
        if waiting:
            frontier.heap[0] = frontier.heap[waiting]
            sift_down(frontier.heap, frontier.probabilities, waiting)
        parent = frontier.parents[best]
        path, alone = frontier.probabilities[best], alone_of[best]
        conditional = alone / max(tree.probabilities[parent] if parent >= 0 else 1.0, 1e-9)
        memory = memory_of[best]
        tree.tokens[nodes], tree.parents[nodes] = frontier.tokens[best], parent
        tree.probabilities[nodes], tree.sources[nodes] = alone, frontier.sources[best]
        tree.matches[nodes] = frontier.matches[best]
        outcome.chances[nodes] = path
        outcome.shown[nodes] = frontier.sources[best]
        node, depth, first_row = nodes, frontier.depths[best], frontier.rows[best]
        nodes += 1
        expected += trust * path
        best_rate = max(best_rate, expected / seconds[nodes])
    return _plan(room, ahead, nodes, kept, trust, gain, cost_s)


@compiled_with(mask_planner)
def _plan(
    room: Any, ahead: Any, nodes: int, kept: int, trust: float, gain: float, cost_s: float
) -> int:
    """Choose how many nodes and which mask rows are worth it, and note what is expected of them."""
    outcome, alone = ahead.outcome, ahead.space.alone
    chances, facts, seconds = outcome.chances[:nodes], outcome.facts, room.seconds
    gains = gain * ahead.shares
    parents = room.tree.parents[:nodes]
    count, sizes = share_rows(parents, chances, seconds, 0, trust, 0.0, gains, cost_s)
    groups, mask_rows, gained = 0, 0, 0.0
    for place in range(count + 1):
        if sizes[place]:
            outcome.places[groups], outcome.sizes[groups] = place - 1, sizes[place]
            groups += 1
            mask_rows += sizes[place]
            stops = trust * chances[place - 1] if place else 1.0
            for child in range(count):
                if parents[child] == place - 1:
                    stops -= trust * chances[child]
            gained += max(stops, 0.0) * gains[: sizes[place]].sum()
    accepted = trust * chances[:count].sum()
    facts[0] = groups
    facts[1] = (accepted + gained) * seconds[0] - (seconds[count + mask_rows] - seconds[0])
    facts[2] = 0.0
    if count and ahead.noted.counts[0] > 0:
        # Without guesses the tree would have had the likeliest nodes of retrieval's own.
        tree = room.tree
        own = np.sort(alone[:kept])[::-1][:count]
        facts[2] = own.sum()
        for node in range(count):
            is_own = tree.probabilities[node] >= own[-1]
            outcome.shown[node] = tree.sources[node] if is_own else _ADAPTIVE
            if is_own:
                facts[2] -= tree.probabilities[node]
    return count
