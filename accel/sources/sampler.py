"""What mask rows say behind the end of a text, as growing a tree reads it: compiled code.

The sampler of ``mask_tokens`` with two matrices folded into tables by token: what a token adds to
the memory, and what the memory adds to a token's score. So a node costs one product, the first of
a tree none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel import lanes, matmul
from accel.draft_tree import TokenArray
from accel.lanes import LANES, highest, larger, load
from accel.mask_tokens import MaskTokens
from accel.matmul import BLOCK, Packed, multiply, narrow, packed, rounded_bits
from accel.sources.compiled import compiled_with
from accel.sources.pooling import POOLING

Floats = NDArray[np.float32]

SHORTLIST = 16
"""Likeliest tokens of each row that are looked at."""

_BLOCK = 4 * LANES


class Tables(NamedTuple):
    """The sampler as growing wants it. state, memory: ``matmul.packed`` bf16; by_token, by_memory:
    float32 [vocabulary, width], what a token adds to the memory, and the memory to its score."""

    state: Packed
    memory: Packed
    by_token: Floats
    by_memory: Floats
    pooling: Floats

    @classmethod
    def of(cls, masks: MaskTokens) -> Tables:
        """Those of mask tokens that have a sampler."""
        sampler = masks.sampler
        assert sampler is not None, "these mask tokens come without a sampler"
        head = masks.head_of(np.arange(len(sampler.by_token), dtype=np.int32))
        pooling = POOLING if masks.pooling is None else masks.pooling
        state, memory = packed(rounded_bits(sampler.state)), packed(rounded_bits(sampler.memory))
        return cls(state, memory, sampler.by_token, head @ sampler.out, pooling)


class Noted(NamedTuple):
    """What mask rows said behind the end of the text.

    tokens: int32 [shortlist], ascending; scores: float32 [masks, shortlist], their logits; known:
    float32 [masks, >= width], what the rows' states add to the memory; counts: int64 [3], rows,
    tokens, and the text's last token, which stands where the first row stood.
    """

    tokens: TokenArray
    scores: Floats
    known: Floats
    counts: NDArray[np.int64]


def noted_room(tables: Tables, masks: int) -> Noted:
    """Room for what ``masks`` rows say, nothing so far."""
    wide = tables.state.shape[0] * BLOCK
    return Noted(
        np.zeros(masks * SHORTLIST, np.int32),
        np.zeros((masks, masks * SHORTLIST), np.float32),
        np.zeros((masks, wide), np.float32),
        np.zeros(3, np.int64),
    )


@compiled_with(lanes)
def likeliest_of(scores: Floats, row: int, found: TokenArray, values: Floats) -> None:
    """Write the places of the highest scores of a row, in no order, as many as ``found`` holds.

    scores: float32 [rows, vocabulary], contiguous; values: float32, as long as ``found``.
    """
    size, most = scores.shape[1], len(found)
    values[:] = -np.inf
    found[:] = 0
    lowest, at, start = np.float32(-np.inf), 0, row * size
    place = 0
    while place < size:
        last = min(place + _BLOCK, size)
        if last - place == _BLOCK:
            top = larger(load(scores, start + place), load(scores, start + place + LANES))
            top = larger(top, load(scores, start + place + 2 * LANES))
            if highest(larger(top, load(scores, start + place + 3 * LANES))) <= lowest:
                place = last
                continue
        for token in range(place, last):
            if scores[row, token] > lowest:
                values[at], found[at] = scores[row, token], token
                lowest = values[0]
                at = 0
                for i in range(1, most):
                    if values[i] < lowest:
                        lowest, at = values[i], i
        place = last


@compiled_with(lanes, matmul, forceinline=True)
def note_rows(
    tables: Tables,
    noted: Noted,
    stored: NDArray[np.int16],
    logits: Floats,
    states: Floats,
    token: int,
    last_token: int,
) -> None:
    """Keep what a group's rows said where the text stopped, and ``token`` was chosen: logits
    float32 [rows, vocabulary] and states float32 [rows, width]. Tokens from ``last_token`` on are
    not looked at. stored: int16 [>= rows, width], written."""
    tokens, scores, counts = noted.tokens, noted.scores, noted.counts
    rows = min(len(logits), len(scores))
    found, values = np.empty(SHORTLIST, np.int32), np.empty(SHORTLIST, np.float32)
    together = np.empty(rows * SHORTLIST, np.int32)
    for row in range(rows):
        likeliest_of(logits, row, found, values)
        together[row * SHORTLIST : (row + 1) * SHORTLIST] = found
    together.sort()
    count = 0
    for each in together:
        if each < last_token and (count == 0 or tokens[count - 1] != each):
            tokens[count] = each
            count += 1
    for row in range(rows):
        for place in range(count):
            scores[row, place] = logits[row, tokens[place]]
        for i in range(states.shape[1]):
            stored[row, i] = narrow(states[row, i], stored)
    state = tables.state
    multiply(stored, 0, rows, state, len(state), state.shape[1], noted.known, 0)
    counts[0], counts[1], counts[2] = rows, count, token


@njit(nogil=True, cache=True, fastmath=True)
def remember(known: Floats, row: int, by_token: Floats, token: int, memory: Floats) -> None:
    """Add what the row's state and the token before say to ``memory``, through silu."""
    for i in range(by_token.shape[1]):
        value = memory[i] + known[row, i] + by_token[token, i]
        memory[i] = value / (np.float32(1) + np.exp(-value))


@njit(nogil=True, cache=True, fastmath=True)
def write_chances(
    scores: Floats,
    row: int,
    by_memory: Floats,
    tokens: TokenArray,
    count: int,
    memory: Floats,
    chances: Floats,
) -> None:
    """Write the chances of the shortlist's tokens."""
    top = np.float32(-1e30)
    for place in range(count):
        token = tokens[place]
        score = scores[row, place]
        for i in range(by_memory.shape[1]):
            score += by_memory[token, i] * memory[i]
        chances[place] = score
        top = max(top, score)
    whole = np.float32(0)
    for place in range(count):
        chances[place] = np.exp(chances[place] - top)
        whole += chances[place]
    for place in range(count):
        chances[place] /= whole
