"""One step of a speculator's network: from the state before it, a token, and the token that
followed the text's longest match there, to the chances of what comes next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accel import compiled_parts, ending, int8, lanes, matmul, meeting, speculator
from accel.compiled_parts import gate
from accel.draft_tree import TokenArray
from accel.ending import Ended
from accel.int8 import Codes, Int8, multiply_int8
from accel.lanes import (
    LANES,
    everywhere,
    exponential,
    highest,
    larger,
    load,
    place_of,
    store,
    total,
)
from accel.matmul import BLOCK, wide
from accel.meeting import await_done
from accel.memory import copied, zeros
from accel.sources.compiled import compiled_with
from accel.sources.speculated_head import MOST_COLUMNS, Head
from accel.speculator import Floats, Speculator

CHILDREN = 3
"""Likeliest tokens that are looked at behind a node."""

_SCORE, _UNCOPIED, _ALL = range(CHILDREN, CHILDREN + 3)
"""Where the exponentials stand that chances are shares of, behind those of the children."""

_HIGHEST = np.float32(80)
"""Logarithm of what is left to all tokens where those with a column have next to nothing: more
would be no number."""

MOST_SEEN = 4
"""Nodes that are looked behind: the root and those next to it, since each takes some
microseconds."""


class Work(NamedTuple):
    """What growing writes.

    known: float32 [2 * model], the model's states; input: float32 [width]; codes: int8, what is
    multiplied; sums: float32 [seen, width], of the root and each node looked behind, what its step
    ends with, or, after ``go_on``, what the next begins with; scales: float32 [seen], what the
    former are normalised by, 0 for the latter; gate_up: float32 [1, 2 * hidden]; gated: float32
    [1, hidden]; added: float32 [width]; logits: float32 [1, columns]; tops: float32 [blocks], the
    highest of each block of these; columns: int32 [CHILDREN], of the likeliest; chances: float32
    [LANES], theirs, and room.
    """

    known: Floats
    input: Floats
    codes: Codes
    sums: Floats
    scales: Floats
    gate_up: Floats
    gated: Floats
    added: Floats
    logits: Floats
    tops: Floats
    columns: TokenArray
    chances: Floats

    @classmethod
    def room(cls, tables: Speculator) -> Work:
        """Room for one tree."""
        width, hidden = tables.width, tables.hidden
        return cls(
            zeros((tables.state_width,), np.float32),
            zeros((width,), np.float32),
            zeros((max(tables.state_width, width, hidden),), np.int8),
            zeros((MOST_SEEN, width), np.float32),
            np.zeros(MOST_SEEN, np.float32),
            zeros((1, 2 * hidden), np.float32),
            zeros((1, hidden), np.float32),
            zeros((width,), np.float32),
            copied(np.full((1, MOST_COLUMNS), -np.inf, np.float32)),
            zeros((MOST_COLUMNS // BLOCK,), np.float32),
            np.zeros(CHILDREN, np.int32),
            zeros((LANES,), np.float32),
        )


@compiled_with(ending, int8, lanes, meeting, borrows=True)
def start(tables: Speculator, work: Work, ended: Ended) -> None:
    """Write what the first step begins with: what another thread makes of the state, or from that
    in ``work.known``."""
    if ended.is_coming:
        await_done(ended.meeting)
        added = ended.product
    else:
        _multiply(work.known, tables.state, work, work.added)
        added = work.added
    for i in range(work.sums.shape[1]):
        work.sums[0, i] = added[i] + tables.biases[0, i]


@compiled_with(int8, lanes, borrows=True, inner=True)
def _multiply(x: Floats, matrix: Int8, work: Work, out: Floats) -> None:
    multiply_int8(x, work.codes, matrix, len(matrix.words), out)


@compiled_with(compiled_parts, int8, lanes, matmul, speculator, borrows=True)
def guess(
    tables: Speculator, head: Head, work: Work, at: int, token: int, length: int, candidate: int
) -> tuple[int, float]:
    """Write the logits of what follows ``token``; ``work.sums[at]``, what the step begins with,
    becomes what it ends with. Returns the candidate's column, -1 for none, and what its logit has
    beside that of a token."""
    x, given, added = work.sums[at], work.input, work.added
    _add_known(tables, x, token, length, candidate)
    _normalise(x, given)
    _multiply(given, tables.gate_up, work, work.gate_up[0])
    gate(work.gate_up, work.gated, 0, work.gated.shape[1])
    _multiply(work.gated[0], tables.down, work, added)
    for i in range(len(x)):
        x[i] += added[i]
    scale = work.scales[at] = _normalise(x, given)
    count = head.counts[0]
    blocks = (count + BLOCK - 1) // BLOCK
    multiply_int8(given, work.codes, head.columns, blocks, work.logits[0])
    for column in range(blocks * BLOCK):
        work.logits[0, column] += head.bias[column]
    if length == 0 or head.slots[candidate] < 0:
        return -1, np.float32(0)
    column, copied = (
        head.slots[candidate],
        tables.copy_bias[length] + scale * _product(x, tables.copy),
    )
    work.logits[0, column] += copied
    return column, copied


@compiled_with(int8, lanes, borrows=True)
def go_on(tables: Speculator, work: Work, at: int) -> None:
    """Make of ``work.sums[at]``, what a step ended with, what the next begins with."""
    if work.scales[at] == 0:
        return
    x, given, added = work.sums[at], work.input, work.added
    _silu(x, work.scales[at], given)
    _multiply(given, tables.onward, work, added)
    for i in range(len(x)):
        x[i] += added[i] + tables.biases[1, i]
    work.scales[at] = 0


@compiled_with(matmul, speculator, borrows=True)
def _add_known(tables: Speculator, x: Floats, token: int, length: int, candidate: int) -> None:
    """Add what is known of the token and of the match that ends with it."""
    for i in range(len(x)):
        x[i] += wide(tables.by_token[token, i]) + tables.by_length[length, i]
    if length > 0:
        for i in range(len(x)):
            x[i] += wide(tables.by_candidate[candidate, i])


@compiled_with(fastmath=True, borrows=True)
def _normalise(x: Floats, given: Floats) -> float:
    """Write the root mean square norm of x; returns what it was scaled by."""
    scale = np.float32(1) / np.sqrt(_product(x, x) / np.float32(len(x)) + np.float32(1e-6))
    for i in range(len(x)):
        given[i] = x[i] * scale
    return scale


@compiled_with(fastmath=True, borrows=True)
def _product(x: Floats, y: Floats) -> float:
    total = np.float32(0)
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@compiled_with(lanes, borrows=True)
def _silu(x: Floats, scale: float, given: Floats) -> None:
    """silu of scaled numbers."""
    one, zero, factor = everywhere(np.float32(1)), everywhere(np.float32(0)), everywhere(scale)
    for i in range(0, len(x), LANES):
        value = load(x, i) * factor
        store(given, i, value / (one + exponential(zero - value)))


@compiled_with(lanes, borrows=True)
def likeliest(
    logits: Floats,
    count: int,
    candidate: int,
    copied: float,
    tops: Floats,
    columns: TokenArray,
    chances: Floats,
) -> None:
    """Write the columns of the highest of the first ``count`` logits and their chances, as many as
    ``columns`` holds, from the highest on. These logits are written over; those behind, up to a
    whole block, are next to nothing. candidate, copied: what ``guess`` returned; tops, chances:
    see ``Work``.

    Without what was added to the candidate the chances of all tokens are 1 in sum: what those with
    a column lack is that of the others.
    """
    blocks = (count + BLOCK - 1) // BLOCK
    for place in range(0, blocks, LANES):
        store(tops, place, everywhere(np.float32(-np.inf)))
    for block in range(blocks):
        tops[block] = _highest(logits, block)
    most, _ = _first_of(tops, blocks)
    shift, whole = everywhere(-most), everywhere(np.float32(0))
    for place in range(0, count, LANES):
        whole = whole + exponential(load(logits, place) + shift)
    among = total(whole)
    score = most if candidate < 0 else logits[0, candidate]
    for found in range(len(columns)):
        level, best = _first_of(tops, blocks)
        column = best * BLOCK
        place = place_of(load(logits, column), level)
        if place == LANES:
            place += place_of(load(logits, column + LANES), level)
        # Of a broken model's logits, which are no numbers, none may be found.
        column = min(column + place, count - 1)
        columns[found], chances[found] = column, level
        logits[0, column] = -np.inf
        tops[best] = _highest(logits, best)
    # One exponential of sixteen lanes instead of six of a library.
    chances[_SCORE], chances[_UNCOPIED] = score, score - copied
    chances[_ALL] = min(np.float32(0), most + _HIGHEST)
    store(chances, 0, exponential(load(chances, 0) + shift))
    before = among + chances[_UNCOPIED] - chances[_SCORE]
    share = np.float32(1) / (among + max(chances[_ALL] - before, np.float32(0)))
    for found in range(len(columns)):
        chances[found] *= share


@compiled_with(lanes, borrows=True, forceinline=True)
def _first_of(tops: Floats, blocks: int) -> tuple[float, int]:
    """The highest of blocks, and the first that has it."""
    level, best = np.float32(-np.inf), 0
    for place in range(0, blocks, LANES):
        top = highest(load(tops, place))
        if top > level:
            level, best = top, place
    return level, best + place_of(load(tops, best), level)


@compiled_with(lanes, borrows=True, forceinline=True)
def _highest(logits: Floats, block: int) -> float:
    """The highest logit of a block."""
    first = block * BLOCK
    return highest(larger(load(logits, first), load(logits, first + LANES)))


__all__ = ["CHILDREN", "MOST_SEEN", "Work", "go_on", "guess", "likeliest", "start"]
