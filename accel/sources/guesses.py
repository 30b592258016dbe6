"""What mask rows guess.

The rows of one group stand behind the node where the last forward stopped. The sampler joins row
``i`` with the tokens on a path, so every node above depth ``masks`` has its own guess of what comes
next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, TokenArray
from accel.mask_tokens import Sampler
from accel.sources.compiled import compiled_with

Floats = NDArray[np.float32]

SHORTLIST = 24
"""Likeliest tokens of each row that are looked at."""
LEAST_SAMPLED = 0.03
"""Paths below are not worth the sampler."""
MOST_SAMPLED = 12


class Group(NamedTuple):
    """Rows of one group after a forward. logits: float32 [masks, vocabulary]; states: float32
    [masks, width]; token: the text's last, which stands where the first row stood."""

    logits: Floats
    states: Floats
    token: int


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


@compiled_with(fastmath=True)
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


@compiled_with()
def known_of(sampler: Sampler, states: Floats) -> Floats:
    """What ``sample`` wants to know of each row of a group. states, and these: float32 [masks,
    width]."""
    known = np.zeros(states.shape, np.float32)
    for row in range(len(states)):
        _apply(sampler.state, states[row], known[row])
    return known
