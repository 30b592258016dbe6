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
from accel.sources import acceptance, best_first, calibration, guesses
from accel.sources import evidence as evidence_of
from accel.sources import pooling as pooling_of
from accel.sources.acceptance import (
    STATE_INPUTS,
    Scratch,
    Weights,
    hidden_of_near,
    probabilities_of,
)
from accel.sources.best_first import (
    LEAST_PROBABILITY,
    MAX_DEPTH,
    WIDE,
    Frontier,
    describe,
    write_path,
)
from accel.sources.calibration import depth_group
from accel.sources.compiled import compiled_with
from accel.sources.evidence import (
    MAX_CANDIDATES,
    Evidence,
    Rows,
    Text,
    forget,
    gather,
)
from accel.sources.expansion import sift_down, sift_up
from accel.sources.guesses import LEAST_SAMPLED, MOST_SAMPLED, Group, sample
from accel.sources.mixture import MixtureDrafter
from accel.sources.pooling import pool
from accel.sources.surroundings import note_surroundings
from accel.sources.token_shapes import TokenShapes

Floats = NDArray[np.float32]

_UNKNOWN = 1e-4
"""What retrieval gives a token that it does not know."""
_ADAPTIVE = np.int8(Source.ADAPTIVE)


class Joint(NamedTuple):
    """A tree, and the same nodes with probabilities and sources as retrieval alone has them."""

    tree: DraftTree
    known: DraftTree


@compiled_with(acceptance, best_first, calibration, evidence_of, guesses, pooling_of)
def _grow(  # noqa: PLR0915
    text: Text,
    rows: Rows,
    shapes: TokenShapes,
    accepted: int,
    evidence: Evidence,
    weights: Weights,
    corrections: Floats,
    scratch: Scratch,
    frontier: Frontier,
    sampler: Sampler,
    states: Floats,
    token: int,
    tokens: TokenArray,
    head: Floats,
    pooling: Floats,
    max_nodes: int,
) -> tuple[TokenArray, TokenArray, Floats, NDArray[np.int8], Floats, NDArray[np.int8], TokenArray]:
    """Tokens, parents, probabilities and sources of the tree, then what retrieval says alone:
    probabilities, sources and matches."""
    masks, width = states.shape
    known_states = np.zeros((masks, width), np.float32)
    for row in range(masks):
        guesses._apply(sampler.state, states[row], known_states[row])
    memories = np.empty((MOST_SAMPLED, width), np.float32)
    chances = np.empty(len(tokens), np.float32)
    pooled = np.empty(len(tokens), np.float32)
    probabilities = np.empty(MAX_CANDIDATES, np.float32)
    pooled_known = np.empty(MAX_CANDIDATES, np.float32)
    state = np.empty(STATE_INPUTS, np.float32)
    room = len(frontier.tokens)
    kept_memory = np.empty(room, np.int32)
    kept_alone = np.empty(room, np.float32)
    kept_guessed = np.empty(room, np.bool_)
    out_tokens = np.empty(max_nodes, np.int32)
    out_parents = np.empty(max_nodes, np.int32)
    out_chances = np.empty(max_nodes, np.float32)
    out_shown = np.empty(max_nodes, np.int8)
    out_alone = np.empty(max_nodes, np.float32)
    out_sources = np.empty(max_nodes, np.int8)
    out_matches = np.empty(max_nodes, np.int32)
    surroundings = note_surroundings(text, shapes, evidence)
    hidden_of_near(weights, evidence, surroundings, scratch)
    row_count = len(rows.lengths)
    for row in range(row_count):
        rows.following[row] = row + 1 if row + 1 < row_count else -1
    kept = waiting = taken = sampled = 0
    node, depth, memory = -1, 0, -1
    here = alone = conditional = 1.0
    first_row = 0 if row_count else -1
    while True:
        if depth < MAX_DEPTH:
            write_path(text, out_tokens, out_parents, node, depth)
            wide = here >= WIDE
            near = surroundings if wide else 0
            count = gather(text, depth, rows, first_row, shapes, near, evidence)
            describe(state, depth, alone, conditional, wide, accepted)
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
            may_sample = depth < masks and (depth == 0 or memory >= 0)
            is_sampled = may_sample and here >= LEAST_SAMPLED and sampled < MOST_SAMPLED
            if is_sampled:
                sample(
                    sampler,
                    states[depth],
                    known_states[depth],
                    token if depth == 0 else last,
                    memories[max(memory, 0)],
                    depth == 0,
                    head,
                    memories[sampled],
                    chances,
                )
                pool(
                    pooling,
                    depth,
                    tokens,
                    chances,
                    evidence.tokens[:count],
                    evidence.best[:count],
                    probabilities[:count],
                    pooled,
                    pooled_known[:count],
                )
            here_memory = sampled if is_sampled else -1
            for item in range(count + (len(tokens) if is_sampled else 0)):
                is_known = item < count
                if is_known:
                    chance = here * (pooled_known[item] if is_sampled else probabilities[item])
                else:
                    chance = here * pooled[item - count]
                if chance < LEAST_PROBABILITY or kept == room:
                    continue
                frontier.parents[kept], frontier.depths[kept] = node, depth + 1
                frontier.probabilities[kept] = chance
                kept_memory[kept] = here_memory
                if is_known:
                    frontier.tokens[kept] = evidence.tokens[item]
                    frontier.rows[kept] = evidence.heads[item]
                    frontier.matches[kept] = evidence.best[item]
                    frontier.sources[kept] = evidence.sources[item]
                    kept_alone[kept] = alone * probabilities[item]
                    kept_guessed[kept] = is_sampled and pooled_known[item] > 2 * probabilities[item]
                else:
                    frontier.tokens[kept] = tokens[item - count]
                    frontier.rows[kept] = -1
                    frontier.matches[kept] = 0
                    frontier.sources[kept] = _ADAPTIVE
                    kept_alone[kept] = alone * _UNKNOWN
                    kept_guessed[kept] = True
                frontier.heap[waiting] = kept
                sift_up(frontier.heap, frontier.probabilities, waiting)
                kept += 1
                waiting += 1
            sampled += is_sampled
            forget(evidence, count)
        if waiting == 0 or taken == max_nodes:
            break
        waiting -= 1
        best = frontier.heap[0]
        if waiting:
            frontier.heap[0] = frontier.heap[waiting]
            sift_down(frontier.heap, frontier.probabilities, waiting)
        out_tokens[taken], out_parents[taken] = frontier.tokens[best], frontier.parents[best]
        out_chances[taken] = frontier.probabilities[best]
        out_alone[taken] = kept_alone[best]
        out_sources[taken] = frontier.sources[best]
        out_shown[taken] = _ADAPTIVE if kept_guessed[best] else frontier.sources[best]
        out_matches[taken] = frontier.matches[best]
        parent = frontier.parents[best]
        above = out_alone[parent] if parent >= 0 else 1.0
        node, depth, first_row = taken, frontier.depths[best], frontier.rows[best]
        here, alone, memory = out_chances[taken], out_alone[taken], kept_memory[best]
        conditional = alone / max(above, 1e-9)
        taken += 1
    return (
        out_tokens[:taken],
        out_parents[:taken],
        out_chances[:taken],
        out_shown[:taken],
        out_alone[:taken],
        out_sources[:taken],
        out_matches[:taken],
    )


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
    view = drafter.view()
    found = _grow(
        *view,
        drafter.weights,
        drafter.calibration.corrections,
        drafter.scratch,
        drafter.frontier,
        sampler,
        np.ascontiguousarray(group.states),
        group.token,
        tokens,
        np.ascontiguousarray(head),
        pooling,
        max_nodes,
    )
    made, parents, chances, shown, alone, sources, matches = found
    drafter.matches = matches
    return Joint(
        DraftTree(made, parents, chances, shown),
        DraftTree(made, parents, alone, sources),
    )
