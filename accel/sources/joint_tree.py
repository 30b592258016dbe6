"""One tree from retrieval and mask rows: at every node both say what may follow.

At the first levels, where mask rows guess, their chances and those of the acceptance model are
pooled (``pooling``). Below, and behind tokens that no mask row was asked about, retrieval speaks
alone, on the text with the path behind it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.mask_tokens import Sampler
from accel.sources import acceptance, best_first, calibration, guesses, heap, joint_growth
from accel.sources import evidence as evidence_of
from accel.sources import pooling as pooling_of
from accel.sources.best_first import (
    LEAST_PROBABILITY,
    MAX_DEPTH,
    Ground,
    Place,
    Tree,
    begin,
    find_at,
    take,
)
from accel.sources.compiled import compiled_with
from accel.sources.evidence import forget
from accel.sources.guesses import LEAST_SAMPLED, MOST_SAMPLED, Group, known_of, sample
from accel.sources.joint_growth import Space, offer, pool_at
from accel.sources.mixture import MixtureDrafter

Floats = NDArray[np.float32]

_ADAPTIVE = np.int8(Source.ADAPTIVE)


class Joint(NamedTuple):
    """A tree, and the same nodes with probabilities and sources as retrieval alone has them."""

    tree: DraftTree
    known: DraftTree


class _Asked(NamedTuple):
    """What mask rows of a group found.

    states: float32 [masks, width]; token: what was chosen before them; tokens: int32 [n],
    ascending, what they find likely; head: float32 [n, width], rows of the head; pooling: float32
    [FEATURES, 3].
    """

    sampler: Sampler
    states: Floats
    token: int
    tokens: TokenArray
    head: Floats
    pooling: Floats


_GROWING = (
    *(acceptance, best_first, calibration, evidence_of, heap, guesses),
    *(joint_growth, pooling_of),
)


@compiled_with(*_GROWING, forceinline=True)
def _ask(
    ground: Ground,
    asked: _Asked,
    known_states: Floats,
    space: Space,
    at: Place,
    count: int,
    memory: int,
    own: int,
) -> None:
    """Write what mask rows say comes behind a node, pooled with the ``count`` tokens that retrieval
    knows. memory: place of what is remembered of the path up to the node before; own: up to this
    one, written."""
    text, depth = ground.text, at.depth
    last = asked.token if depth == 0 else text.tokens[text.stop + depth - 1]
    sample(
        asked.sampler,
        asked.states[depth],
        known_states[depth],
        last,
        space.memories[max(memory, 0)],
        depth == 0,
        asked.head,
        space.memories[own],
        space.chances,
    )
    known = ground.scratch.probabilities
    pool_at(asked.pooling, depth, asked.tokens, ground.evidence, known, count, space)


@compiled_with(*_GROWING)
def _grow(
    ground: Ground, asked: _Asked, space: Space, max_nodes: int
) -> tuple[int, Floats, NDArray[np.int8]]:
    """Write the tree as retrieval alone has it; returns how many nodes there are, and their chances
    and sources as both have it."""
    frontier, tree, masks = ground.frontier, ground.tree, len(asked.states)
    known_states = known_of(asked.sampler, asked.states)
    chances, shown = np.empty(max_nodes, np.float32), np.empty(max_nodes, np.int8)
    doubled = np.zeros(len(frontier.tokens), np.bool_)
    row_count = len(ground.rows.lengths)
    near = begin(ground, row_count)
    kept = waiting = nodes = sampled = 0
    at, memory = Place(-1, 0, 1.0, 1.0, 1.0, 0 if row_count else -1), -1
    while True:
        if at.depth < MAX_DEPTH:
            count = find_at(ground, at, near)
            may_sample = at.depth < masks and (at.depth == 0 or memory >= 0)
            is_sampled = may_sample and at.path >= LEAST_SAMPLED and sampled < MOST_SAMPLED
            own = sampled if is_sampled else -1
            if is_sampled:
                _ask(ground, asked, known_states, space, at, count, memory, own)
            least = LEAST_PROBABILITY
            added = offer(ground, space, asked.tokens, at, count, own, least, waiting, kept)
            for item in range(kept, kept + added):
                share, alone = frontier.probabilities[item] / at.path, space.alone[item] / at.alone
                doubled[item] = is_sampled and share > 2 * alone
            kept, waiting, sampled = kept + added, waiting + added, sampled + is_sampled
            forget(ground.evidence, count)
        if waiting == 0 or nodes == max_nodes:
            return nodes, chances, shown
        waiting -= 1
        best = take(frontier, waiting)
        parent, alone = frontier.parents[best], np.float64(space.alone[best])
        conditional = alone / max(tree.probabilities[parent] if parent >= 0 else 1.0, 1e-9)
        tree.tokens[nodes], tree.parents[nodes] = frontier.tokens[best], parent
        tree.probabilities[nodes], tree.sources[nodes] = alone, frontier.sources[best]
        tree.matches[nodes], chances[nodes] = frontier.matches[best], frontier.probabilities[best]
        shown[nodes] = _ADAPTIVE if doubled[best] else frontier.sources[best]
        depth, first_row = np.int64(frontier.depths[best]), np.int64(frontier.rows[best])
        at = Place(nodes, depth, np.float64(chances[nodes]), alone, conditional, first_row)
        memory = np.int64(space.memory_of[best])
        nodes += 1


def joint_tree(
    drafter: MixtureDrafter,
    group: Group,
    sampler: Sampler,
    tokens: TokenArray,
    head: Floats,
    pooling: Floats,
    max_nodes: int,
) -> Joint:
    """The likeliest paths by the mask rows of ``group`` and by ``drafter`` together, in decreasing
    probability.

    tokens: int32 [n], ascending, what mask rows find likely; head: float32 [n, width], their rows
    of the head; pooling: float32 [FEATURES, 3].
    """
    ground = Ground(
        *(*drafter.view(), drafter.weights, drafter.calibration.corrections),
        *(drafter.scratch, drafter.frontier, Tree.room(max_nodes)),
    )
    states = np.ascontiguousarray(group.states)
    head, (masks, width) = np.ascontiguousarray(head), states.shape
    asked = _Asked(sampler, states, group.token, tokens, head, pooling)
    space = Space.of(masks, width, width, len(tokens))
    count, chances, shown = _grow(ground, asked, space, max_nodes)
    tree = ground.tree
    made, parents, sources = tree.tokens[:count], tree.parents[:count], tree.sources[:count]
    drafter.matches = tree.matches[:count]
    return Joint(
        DraftTree(made, parents, chances[:count], shown[:count]),
        DraftTree(made, parents, tree.probabilities[:count], sources),
    )
