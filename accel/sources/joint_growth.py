"""Growth of one tree from retrieval and mask rows that knows what verifying costs, in one call.

The trees are those of ``joint_tree``, grown as far as ``best_first`` grows them: until no larger
one can bring more tokens per second. The same call shares out the mask rows of the next forward.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
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
    heap,
    pooling,
    sampler,
)
from accel.sources import surroundings as surroundings_of
from accel.sources.acceptance import Floats
from accel.sources.best_first import (
    MAX_DEPTH,
    MAX_KEPT,
    Ground,
    Place,
    begin,
    find_at,
    least_of,
    take,
)
from accel.sources.compiled import FieldsType, compiled_with
from accel.sources.evidence import MAX_CANDIDATES, Evidence, Text, forget
from accel.sources.guesses import LEAST_SAMPLED, MOST_SAMPLED
from accel.sources.heap import sift_up
from accel.sources.pooling import pool
from accel.sources.sampler import Noted, Tables, note_rows, remember, write_chances

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

    @classmethod
    def of(cls, masks: int, width: int, wide: int, listed: int) -> Space:
        """Room for so many mask rows and listed tokens. wide: numbers that are remembered, at least
        ``width``, those of a state."""
        return cls(
            np.zeros((MOST_SAMPLED, wide), np.float32),
            np.zeros((max(masks, 1), width), np.int16),
            np.zeros(listed, np.float32),
            np.zeros(listed, np.float32),
            np.zeros(MAX_CANDIDATES, np.float32),
            np.zeros(MAX_KEPT, np.int32),
            np.zeros(MAX_KEPT, np.float32),
        )


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


@compiled_with()
def _ahead_of(
    tables: Tables, noted: Noted, space: Space, outcome: Outcome, shares: NDArray[np.float64]
) -> Ahead:
    return Ahead(tables, noted, space, outcome, shares)


def ahead_of(tables: Tables, shares: NDArray[np.float64], noted: Noted, outcome: Outcome) -> Ahead:
    """What growing takes. shares: float64 [masks], what each row of a group brings of all."""
    masks, width = len(noted.scores), tables.by_token.shape[1]
    space = Space.of(masks, width, noted.known.shape[1], len(noted.tokens))
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


_GROWING = (
    *(acceptance, best_first, calibration, evidence, heap, lanes, mask_planner, matmul),
    *(pooling, sampler, surroundings_of),
)


@compiled_with(evidence, pooling, forceinline=True, borrows=True)
def pool_at(
    weights: Floats,
    depth: int,
    tokens: TokenArray,
    found: Evidence,
    known: Floats,
    count: int,
    space: Space,
) -> None:
    """``pool`` the chances that mask rows give ``tokens`` behind a node with those, ``known``, of
    the ``count`` tokens that retrieval found."""
    listed = len(tokens)
    pool(
        *(weights, depth, tokens, space.chances[:listed]),
        *(found.tokens[:count], found.best[:count], known[:count]),
        *(space.pooled[:listed], space.pooled_known[:count]),
    )


@compiled_with(*_GROWING, forceinline=True, borrows=True)
def _guess(
    ground: Ground,
    tables: Tables,
    noted: Noted,
    space: Space,
    at: Place,
    count: int,
    memory: int,
    own: int,
) -> None:
    """Write what mask rows say comes behind a node, pooled with the ``count`` tokens that retrieval
    knows.

    memory: place of what is remembered of the path up to the node before; own: of the path to this
    one, written.
    """
    known, listed, text = ground.scratch.probabilities, noted.counts[1], ground.text
    tokens, chances, remembered = noted.tokens[:listed], space.chances[:listed], space.memories[own]
    before = noted.counts[2]
    if at.depth == 0:
        remembered[:] = 0
    else:
        stored, matrix = space.stored, tables.memory
        for i in range(tables.by_token.shape[1]):
            stored[0, i] = narrow(space.memories[memory, i], stored)
        depth = matrix.shape[1]
        multiply(stored, 0, 1, matrix, len(matrix), depth, space.memories[own:], 0)
        before = np.int64(text.tokens[text.stop + at.depth - 1])
    remember(noted.known, at.depth, tables.by_token, before, remembered)
    write_chances(noted.scores, at.depth, tables.by_memory, tokens, listed, remembered, chances)
    pool_at(tables.pooling, at.depth, tokens, ground.evidence, known, count, space)


@compiled_with(*_GROWING, forceinline=True, borrows=True)
def offer(
    ground: Ground,
    space: Space,
    tokens: TokenArray,
    at: Place,
    count: int,
    own: int,
    least: float,
    waiting: int,
    kept: int,
) -> int:
    """Put the ``count`` tokens that retrieval knows behind a node, and those that mask rows list,
    on the frontier where they are ``least`` probable at least; returns how many were. own: place in
    ``space`` of what is remembered of the path, -1 where no mask row was asked."""
    frontier, found, known = ground.frontier, ground.evidence, ground.scratch.probabilities
    added = 0
    for item in range(count + (len(tokens) if own >= 0 else 0)):
        place, listed = kept + added, item - count
        if listed < 0:
            chance = at.path * (space.pooled_known[item] if own >= 0 else known[item])
        else:
            chance = at.path * space.pooled[listed]
        if chance < least or place == MAX_KEPT:
            continue
        frontier.parents[place], frontier.depths[place] = at.node, at.depth + 1
        frontier.probabilities[place], space.memory_of[place] = chance, own
        if listed < 0:
            frontier.tokens[place], frontier.rows[place] = found.tokens[item], found.heads[item]
            frontier.matches[place] = found.best[item]
            frontier.sources[place] = found.sources[item]
            space.alone[place] = at.alone * known[item]
        else:
            frontier.tokens[place], frontier.rows[place] = tokens[listed], -1
            frontier.matches[place], frontier.sources[place] = 0, _ADAPTIVE
            space.alone[place] = at.alone * UNKNOWN
        frontier.heap[waiting + added] = place
        sift_up(frontier.heap, frontier.probabilities, waiting + added)
        added += 1
    return added


@compiled_with(*_GROWING)
def grow_joint_in(
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
    ground = Ground(
        *(Text(buffer, previous, newest, start, stop, spelt), room.rows, room.shapes, accepted),
        *(room.evidence, room.weights, room.corrections, room.scratch, room.frontier, room.tree),
    )
    frontier, tree, seconds, slopes = ground.frontier, ground.tree, room.seconds, room.slopes
    tables, noted, space, outcome = ahead.tables, ahead.noted, ahead.space, ahead.outcome
    masks, tokens = noted.counts[0], noted.tokens[: noted.counts[1]]
    expected, best_rate = 1.0, 1.0 / seconds[0]
    least = least_of(slopes, max_nodes, trust / best_rate)
    near = begin(ground, row_count)
    kept = waiting = nodes = sampled = 0
    at, memory = Place(-1, 0, 1.0, 1.0, 1.0, 0 if row_count else -1), -1
    while nodes < max_nodes:
        if at.depth < MAX_DEPTH:
            count = find_at(ground, at, near)
            may_sample = at.depth < masks and (at.depth == 0 or memory >= 0)
            is_sampled = may_sample and at.path >= LEAST_SAMPLED and sampled < MOST_SAMPLED
            if is_sampled:
                _guess(ground, tables, noted, space, at, count, memory, sampled)
            own = sampled if is_sampled else -1
            added = offer(ground, space, tokens, at, count, own, least, waiting, kept)
            kept, waiting, sampled = kept + added, waiting + added, sampled + is_sampled
            forget(ground.evidence, count)
        if (
            waiting == 0
            or trust * frontier.probabilities[frontier.heap[0]] < best_rate * slopes[nodes]
        ):
            break
        waiting -= 1
        best = take(frontier, waiting)
        parent, path = frontier.parents[best], frontier.probabilities[best]
        alone, memory = np.float64(space.alone[best]), np.int64(space.memory_of[best])
        conditional = alone / max(tree.probabilities[parent] if parent >= 0 else 1.0, 1e-9)
        tree.tokens[nodes], tree.parents[nodes] = frontier.tokens[best], parent
        tree.probabilities[nodes], tree.sources[nodes] = alone, frontier.sources[best]
        tree.matches[nodes] = frontier.matches[best]
        outcome.chances[nodes], outcome.shown[nodes] = path, frontier.sources[best]
        depth, first_row = np.int64(frontier.depths[best]), np.int64(frontier.rows[best])
        at = Place(nodes, depth, path, alone, conditional, first_row)
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
