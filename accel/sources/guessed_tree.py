"""Guesses of mask rows to a draft tree, merged with the tree of other sources.

Where another source also knows continuations, both opinions are multiplied, each to a power, and
normalised: they err for different reasons.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.mask_tokens import Sampler
from accel.sources import guesses
from accel.sources.compiled import compiled_with
from accel.sources.guesses import LEAST_SAMPLED, MOST_SAMPLED, Floats, Group, known_of, sample

LEAST_PROBABILITY = 0.004
OTHER_POWER = 0.5
"""Power of the other sources' opinion; the rest is the mask rows'."""
_ADAPTIVE = np.int8(Source.ADAPTIVE)
_MAX_KEPT = 4096


class Merged(NamedTuple):
    """A tree, and for each of its nodes the node of the other source's tree or -1."""

    tree: DraftTree
    others: TokenArray


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


class _Other(NamedTuple):
    """The other source's tree, as ``DraftTree`` has it."""

    tokens: TokenArray
    parents: TokenArray
    probabilities: Floats
    sources: NDArray[np.int8]


class _Said(NamedTuple):
    """Of each token of the shortlist: its chance by the mask rows, by the other source, -1 where
    that says nothing, and by both, float32; and the other source's node, int32, -1 for none."""

    chances: Floats
    others: Floats
    joined: Floats
    nodes: TokenArray


class _Kept(NamedTuple):
    """Candidates: their tokens, the nodes that they stand behind, depths, the other source's nodes
    and what the sampler remembers behind them, -1 for neither, chances of their paths, and whether
    they are still to be taken."""

    tokens: TokenArray
    parents: TokenArray
    depths: TokenArray
    others: TokenArray
    memories: TokenArray
    chances: Floats
    waiting: NDArray[np.bool_]


class _Place(NamedTuple):
    """Where a tree grows: a node, -1 for the root, its depth, the chance of its path, its token,
    and as in ``_Kept`` the other source's node and what the sampler remembers."""

    node: int
    depth: int
    chance: float
    token: int
    other: int
    memory: int


@njit(nogil=True, cache=True)
def _room(tokens: int) -> tuple[_Said, _Kept]:
    """Room for a shortlist of so many, and for candidates."""
    said = _Said(
        np.empty(tokens, np.float32),
        np.empty(tokens, np.float32),
        np.empty(tokens, np.float32),
        np.empty(tokens, np.int32),
    )
    kept = _Kept(
        np.empty(_MAX_KEPT, np.int32),
        np.empty(_MAX_KEPT, np.int32),
        np.empty(_MAX_KEPT, np.int32),
        np.empty(_MAX_KEPT, np.int32),
        np.empty(_MAX_KEPT, np.int32),
        np.empty(_MAX_KEPT, np.float32),
        np.zeros(_MAX_KEPT, np.bool_),
    )
    return said, kept


@compiled_with(borrows=True)
def _is_known(at: _Place) -> bool:
    """Whether the other source may say something of what follows a place."""
    return at.node < 0 or at.other >= 0


@compiled_with(borrows=True)
def _share(other: _Other, child: int, at: _Place) -> float:
    """The other source's chance of a child of its node at a place."""
    above = np.float32(1) if at.other < 0 else other.probabilities[at.other]
    share: float = other.probabilities[child] / above
    return share


@compiled_with(borrows=True)
def _ask(other: _Other, at: _Place, tokens: TokenArray, said: _Said) -> bool:
    """Write what the other source says of a shortlist at a place; returns whether it says
    anything."""
    said.others[:] = -1
    said.nodes[:] = -1
    found = False
    if _is_known(at):
        for child in range(len(other.tokens)):
            if other.parents[child] == at.other:
                slot = np.searchsorted(tokens, other.tokens[child])
                said.others[slot], said.nodes[slot] = _share(other, child, at), child
                found = True
    return found


@compiled_with(borrows=True)
def _keep(
    kept: _Kept, count: int, at: _Place, token: int, chance: float, node: int, memory: int
) -> int:
    """Keep a candidate behind a place where there is room; returns how many there are. node: the
    other source's."""
    if count == _MAX_KEPT:
        return count
    kept.tokens[count], kept.parents[count], kept.depths[count] = token, at.node, at.depth + 1
    kept.others[count], kept.memories[count] = node, memory
    kept.chances[count], kept.waiting[count] = chance, True
    return count + 1


@compiled_with(borrows=True)
def _keep_joined(
    kept: _Kept, count: int, at: _Place, tokens: TokenArray, said: _Said, memory: int
) -> int:
    """Keep what both sources find likely enough; returns how many candidates there are."""
    for i in range(len(tokens)):
        chance = at.chance * said.joined[i]
        if chance >= LEAST_PROBABILITY:
            count = _keep(kept, count, at, tokens[i], chance, said.nodes[i], memory)
    return count


@compiled_with(borrows=True)
def _keep_others(kept: _Kept, count: int, at: _Place, other: _Other) -> int:
    """Keep what the other source drafted; returns how many candidates there are."""
    if _is_known(at):
        for child in range(len(other.tokens)):
            if other.parents[child] == at.other:
                chance = at.chance * _share(other, child, at)
                count = _keep(kept, count, at, other.tokens[child], chance, child, -1)
    return count


@compiled_with(borrows=True)
def _best_of(kept: _Kept, count: int) -> int:
    """The likeliest candidate that is still to be taken, of equals the first; -1 for none."""
    best = -1
    for i in range(count):
        if kept.waiting[i] and (best < 0 or kept.chances[i] > kept.chances[best]):
            best = i
    return best


@compiled_with(borrows=True)
def _place_of(kept: _Kept, best: int, node: int) -> _Place:
    """Where a candidate stands that became a node."""
    return _Place(
        node,
        np.int64(kept.depths[best]),
        kept.chances[best],
        np.int64(kept.tokens[best]),
        np.int64(kept.others[best]),
        np.int64(kept.memories[best]),
    )


@compiled_with(guesses)
def _grow(
    sampler: Sampler,
    states: Floats,
    token: int,
    tokens: TokenArray,
    head: Floats,
    other: _Other,
    power: float,
    max_nodes: int,
) -> tuple[TokenArray, _Kept]:
    """The candidates that are taken, by their places, in this order; and all there were."""
    (masks, width), known = states.shape, known_of(sampler, states)
    memories = np.empty((MOST_SAMPLED, width), np.float32)
    said, kept = _room(len(tokens))
    order, nodes = np.empty(max_nodes, np.int32), 0
    count = sampled = 0
    at = _Place(-1, 0, np.float32(1), token, -1, -1)
    while True:
        is_guessed = at.depth == 0 or at.memory >= 0
        is_likely = at.depth < masks and at.chance >= LEAST_SAMPLED
        if is_guessed and is_likely and sampled < MOST_SAMPLED:
            sample(
                *(sampler, states[at.depth], known[at.depth], at.token),
                *(memories[max(at.memory, 0)], at.depth == 0, head),
                *(memories[sampled], said.chances),
            )
            has_others = _ask(other, at, tokens, said)
            _joined(said.chances, said.others, has_others, power, said.joined)
            count = _keep_joined(kept, count, at, tokens, said, sampled)
            sampled += 1
        else:
            count = _keep_others(kept, count, at, other)
        best = _best_of(kept, count)
        if best < 0 or nodes == max_nodes:
            break
        kept.waiting[best] = False
        order[nodes], at = best, _place_of(kept, best, nodes)
        nodes += 1
    return order[:nodes], kept


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
    drafted = _Other(
        other.tokens.astype(np.int32),
        other.parents.astype(np.int32),
        other.probabilities.astype(np.float32),
        other.sources.astype(np.int8),
    )
    order, kept = _grow(
        sampler,
        np.ascontiguousarray(group.states),
        group.token,
        tokens,
        np.ascontiguousarray(head),
        drafted,
        power,
        max_nodes,
    )
    others = kept.others[order]
    sources = np.full(len(order), _ADAPTIVE)
    sources[others >= 0] = drafted.sources[others[others >= 0]]
    parts = kept.tokens[order], kept.parents[order], kept.chances[order]
    return Merged(DraftTree(*parts, sources), others)
