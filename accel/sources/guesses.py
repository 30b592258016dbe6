"""Guesses of mask rows to a draft tree, merged with the tree of other sources.

The rows of one group stand behind the node where the last forward stopped. The sampler joins row
``i`` with the tokens on a path, so every node above depth ``masks`` has its own guess of what comes
next. Where another source also knows continuations, both opinions are multiplied, each to a power,
and normalised: they err for different reasons.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.mask_tokens import Sampler

Floats = NDArray[np.float32]

SHORTLIST = 24
"""Likeliest tokens of each row that are looked at."""
LEAST_PROBABILITY = 0.004
LEAST_SAMPLED = 0.03
"""Paths below are not worth the sampler."""
MOST_SAMPLED = 12
OTHER_POWER = 0.5
"""Power of the other sources' opinion; the rest is the mask rows'."""
_ADAPTIVE = np.int8(Source.ADAPTIVE)
_MAX_KEPT = 4096


class Group(NamedTuple):
    """Rows of one group after a forward. logits: float32 [masks, vocabulary]; states: float32
    [masks, width]; token: the text's last, which stands where the first row stood."""

    logits: Floats
    states: Floats
    token: int


class Merged(NamedTuple):
    """A tree, and for each of its nodes the node of the other source's tree or -1."""

    tree: DraftTree
    others: TokenArray


@njit(nogil=True, cache=True)
def likeliest(scores: Floats, count: int) -> TokenArray:
    """Indices of the ``count`` highest scores, in no order. scores: float32 [n]."""
    found = np.empty(count, np.int32)
    values = np.full(count, -np.inf, np.float32)
    lowest = 0
    for index in range(len(scores)):
        if scores[index] > values[lowest]:
            values[lowest] = scores[index]
            found[lowest] = index
            lowest = int(values.argmin())
    return found[values > -np.inf]


def shortlist(group: Group, other: DraftTree) -> TokenArray:
    """Tokens that are looked at: what the rows find likely, and what the other source drafted."""
    rows = [likeliest(row, SHORTLIST) for row in group.logits]
    return np.unique(np.concatenate([*rows, other.tokens])).astype(np.int32)


@njit(nogil=True, cache=True, fastmath=True)
def _apply(matrix: Floats, x: Floats, out: Floats) -> None:
    """Add matrix [n, m] times x [m] to out [n]."""
    for i in range(len(out)):
        total = np.float32(0)
        for j in range(len(x)):
            total += matrix[i, j] * x[j]
        out[i] += total


@njit(nogil=True, cache=True, fastmath=True)
def sample(
    sampler: Sampler,
    state: Floats,
    known: Floats,
    token: int,
    memory_before: Floats,
    first: bool,
    head: Floats,
    memory: Floats,
    chances: Floats,
) -> None:
    """Write the new memory [width], and the chances [shortlist] of what follows ``token``."""
    for i in range(len(memory)):
        memory[i] = known[i] + sampler.by_token[token, i]
    if not first:
        _apply(sampler.memory, memory_before, memory)
    for i in range(len(memory)):
        memory[i] = memory[i] / (1 + np.exp(-memory[i]))
    joined = state.copy()
    _apply(sampler.out, memory, joined)
    chances[:] = 0
    _apply(head, joined, chances)
    highest = chances.max()
    total = np.float32(0)
    for i in range(len(chances)):
        chances[i] = np.exp(chances[i] - highest)
        total += chances[i]
    for i in range(len(chances)):
        chances[i] /= total


@njit(nogil=True, cache=True)
def _joined(
    chances: Floats, others: Floats, has_others: bool, power: float, joined: Floats
) -> None:
    """Write the chances of both sources together. others: float32, -1 where the other source says
    nothing of a token: what it leaves over goes to those as the mask rows have it."""
    left, unknown = np.float32(1), np.float32(1e-9)
    for i in range(len(chances)):
        if others[i] >= 0:
            left -= others[i]
        else:
            unknown += chances[i]
    left = max(left, np.float32(0.02))
    total = np.float32(0)
    for i in range(len(chances)):
        other = others[i] if others[i] >= 0 else left * chances[i] / unknown
        joined[i] = chances[i]
        if has_others:
            joined[i] = chances[i] ** (1 - power) * max(other, np.float32(1e-6)) ** power
        total += joined[i]
    for i in range(len(chances)):
        joined[i] /= total


@njit(nogil=True, cache=True)
def _grow(  # noqa: PLR0915
    sampler: Sampler,
    states: Floats,
    token: int,
    tokens: TokenArray,
    head: Floats,
    other_tokens: TokenArray,
    other_parents: TokenArray,
    other_probabilities: Floats,
    other_sources: NDArray[np.int8],
    power: float,
    max_nodes: int,
) -> tuple[TokenArray, TokenArray, Floats, NDArray[np.int8], TokenArray]:
    masks, width = states.shape
    known = np.zeros((masks, width), np.float32)
    for row in range(masks):
        _apply(sampler.state, states[row], known[row])
    memories = np.empty((MOST_SAMPLED, width), np.float32)
    chances = np.empty(len(tokens), np.float32)
    others = np.empty(len(tokens), np.float32)
    joined = np.empty(len(tokens), np.float32)
    other_of = np.empty(len(tokens), np.int32)
    # Candidates: the first ``taken`` of ``order`` are the tree.
    kept_token = np.empty(_MAX_KEPT, np.int32)
    kept_parent = np.empty(_MAX_KEPT, np.int32)
    kept_depth = np.empty(_MAX_KEPT, np.int32)
    kept_other = np.empty(_MAX_KEPT, np.int32)
    kept_memory = np.empty(_MAX_KEPT, np.int32)
    chance = np.empty(_MAX_KEPT, np.float32)
    waiting = np.zeros(_MAX_KEPT, np.bool_)
    out_tokens = np.empty(max_nodes, np.int32)
    out_parents = np.empty(max_nodes, np.int32)
    out_chances = np.empty(max_nodes, np.float32)
    out_sources = np.empty(max_nodes, np.int8)
    out_others = np.empty(max_nodes, np.int32)
    kept = sampled = taken = 0
    node, depth, here, last, other, memory = -1, 0, np.float32(1), token, -1, -1
    while True:
        has_other = node < 0 or other >= 0
        may_sample = depth == 0 or memory >= 0
        if may_sample and depth < masks and here >= LEAST_SAMPLED and sampled < MOST_SAMPLED:
            sample(
                sampler,
                states[depth],
                known[depth],
                last,
                memories[max(memory, 0)],
                depth == 0,
                head,
                memories[sampled],
                chances,
            )
            others[:] = -1
            other_of[:] = -1
            children = 0
            if has_other:
                above = np.float32(1) if other < 0 else other_probabilities[other]
                for child in range(len(other_tokens)):
                    if other_parents[child] == other:
                        place = np.searchsorted(tokens, other_tokens[child])
                        others[place] = other_probabilities[child] / above
                        other_of[place] = child
                        children += 1
            _joined(chances, others, children > 0, power, joined)
            for i in range(len(tokens)):
                if here * joined[i] >= LEAST_PROBABILITY and kept < _MAX_KEPT:
                    kept_token[kept], kept_parent[kept] = tokens[i], node
                    kept_depth[kept], kept_other[kept] = depth + 1, other_of[i]
                    kept_memory[kept], chance[kept] = sampled, here * joined[i]
                    waiting[kept] = True
                    kept += 1
            sampled += 1
        elif has_other:
            above = np.float32(1) if other < 0 else other_probabilities[other]
            for child in range(len(other_tokens)):
                if other_parents[child] == other and kept < _MAX_KEPT:
                    kept_token[kept], kept_parent[kept] = other_tokens[child], node
                    kept_depth[kept], kept_other[kept] = depth + 1, child
                    kept_memory[kept] = -1
                    chance[kept] = here * other_probabilities[child] / above
                    waiting[kept] = True
                    kept += 1
        best = -1
        for i in range(kept):
            if waiting[i] and (best < 0 or chance[i] > chance[best]):
                best = i
        if best < 0 or taken == max_nodes:
            break
        waiting[best] = False
        out_tokens[taken], out_parents[taken] = kept_token[best], kept_parent[best]
        out_chances[taken], out_others[taken] = chance[best], kept_other[best]
        out_sources[taken] = other_sources[kept_other[best]] if kept_other[best] >= 0 else _ADAPTIVE
        node, depth, here = taken, kept_depth[best], chance[best]
        last, other, memory = kept_token[best], kept_other[best], kept_memory[best]
        taken += 1
    return (
        out_tokens[:taken],
        out_parents[:taken],
        out_chances[:taken],
        out_sources[:taken],
        out_others[:taken],
    )


def merge(
    group: Group,
    sampler: Sampler,
    tokens: TokenArray,
    head: Floats,
    other: DraftTree,
    max_nodes: int,
    power: float = OTHER_POWER,
) -> Merged:
    """The likeliest paths by the mask rows of ``group`` and by ``other`` together.

    tokens: int32 [n], ascending, ``shortlist``; head: float32 [n, width], their rows of the head.
    """
    *tree, others = _grow(
        sampler,
        np.ascontiguousarray(group.states),
        group.token,
        tokens,
        np.ascontiguousarray(head),
        other.tokens.astype(np.int32),
        other.parents.astype(np.int32),
        other.probabilities.astype(np.float32),
        other.sources.astype(np.int8),
        power,
        max_nodes,
    )
    return Merged(DraftTree(*tree), others)
