"""One step of a speculator's network: from the state before it, a token, and the token that
followed the text's longest match there, to the chances of what comes next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel import compiled_parts, lanes, matmul, speculator
from accel.compiled_parts import gate
from accel.draft_tree import TokenArray
from accel.lanes import LANES, everywhere, exponential, highest, larger, load, store, total
from accel.matmul import BLOCK, multiply_row, narrow, wide
from accel.sources.compiled import compiled_with
from accel.sources.speculated_head import MOST_COLUMNS, Head
from accel.speculator import Floats, Halves, Speculator

MOST_SEEN = 4
"""Nodes that are looked behind: the root and those next to it, since each takes some
microseconds."""


class Work(NamedTuple):
    """What growing writes.

    known: int16 [1, 2 * model], the model's states; input: int16 [1, width]; sums: float32 [seen,
    width], of the root and each node looked behind, what the next step begins with; gate_up:
    float32 [1, 2 * hidden]; gated: int16 [1, hidden]; added: float32 [1, width]; logits: float32
    [1, columns]; tokens, parents, chances, seen: of the nodes.
    """

    known: Halves
    input: Halves
    sums: Floats
    gate_up: Floats
    gated: Halves
    added: Floats
    logits: Floats

    @classmethod
    def room(cls, tables: Speculator) -> Work:
        """Room for one tree."""
        width, hidden = tables.width, tables.hidden
        return cls(
            np.zeros((1, tables.state_width), np.int16),
            np.zeros((1, width), np.int16),
            np.zeros((MOST_SEEN, width), np.float32),
            np.zeros((1, 2 * hidden), np.float32),
            np.zeros((1, hidden), np.int16),
            np.zeros((1, width), np.float32),
            np.full((1, MOST_COLUMNS), -np.inf, np.float32),
        )


@compiled_with(matmul)
def note_in(known: Halves, last: NDArray[Any], middle: NDArray[Any]) -> None:
    """Keep the model's states of a row, see ``Model.state_of``, for the next tree."""
    width = len(last)
    for i in range(width):
        known[0, i] = narrow(wide(last[i]), known)
        known[0, width + i] = narrow(wide(middle[i]), known)


@compiled_with(matmul)
def start(tables: Speculator, work: Work) -> None:
    """Write what the first step begins with, from the state in ``work.known``."""
    multiply_row(work.known, tables.state, len(tables.state), tables.state.shape[1], work.added)
    for i in range(work.sums.shape[1]):
        work.sums[0, i] = work.added[0, i] + tables.biases[0, i]


@compiled_with(lanes, compiled_parts, matmul, speculator)
def guess(
    tables: Speculator, head: Head, work: Work, before: int, token: int, length: int, candidate: int
) -> None:
    """Write the logits of what follows ``token``, and, over what stood ``before``, what the next
    step begins with: ``work.sums[before]`` becomes that."""
    x, given, added = work.sums[before], work.input, work.added
    _add_known(tables, x, token, length, candidate)
    _normalise(x, given)
    multiply_row(given, tables.gate_up, len(tables.gate_up), tables.gate_up.shape[1], work.gate_up)
    gate(work.gate_up, work.gated, 0, work.gated.shape[1])
    multiply_row(work.gated, tables.down, len(tables.down), tables.down.shape[1], added)
    for i in range(len(x)):
        x[i] += added[0, i]
    scale = _normalise(x, given)
    count = head.counts[0]
    blocks = (count + BLOCK - 1) // BLOCK
    multiply_row(given, head.columns, blocks, head.columns.shape[1], work.logits)
    for column in range(blocks * BLOCK):
        work.logits[0, column] += head.bias[column]
    if length > 0 and head.slots[candidate] >= 0:
        copied = tables.copy_bias[length] + scale * _product(x, tables.copy)
        work.logits[0, head.slots[candidate]] += copied
    _silu(x, scale, given)
    multiply_row(given, tables.onward, len(tables.onward), tables.onward.shape[1], added)
    for i in range(len(x)):
        x[i] += added[0, i] + tables.biases[1, i]


@compiled_with(matmul, speculator)
def _add_known(tables: Speculator, x: Floats, token: int, length: int, candidate: int) -> None:
    """Add what is known of the token and of the match that ends with it."""
    for i in range(len(x)):
        x[i] += wide(tables.by_token[token, i]) + tables.by_length[length, i]
    if length > 0:
        for i in range(len(x)):
            x[i] += wide(tables.by_candidate[candidate, i])


@compiled_with(matmul, fastmath=True)
def _normalise(x: Floats, given: Halves) -> float:
    """Write the root mean square norm of x; returns what it was scaled by."""
    scale = np.float32(1) / np.sqrt(_product(x, x) / np.float32(len(x)) + np.float32(1e-6))
    for i in range(len(x)):
        given[0, i] = narrow(x[i] * scale, given)
    return scale


@compiled_with(fastmath=True)
def _product(x: Floats, y: Floats) -> float:
    total = np.float32(0)
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@compiled_with(lanes, matmul)
def _silu(x: Floats, scale: float, given: Halves) -> None:
    """silu of scaled numbers."""
    one, zero, factor = everywhere(np.float32(1)), everywhere(np.float32(0)), everywhere(scale)
    for i in range(0, len(x), LANES):
        value = load(x, i) * factor
        store(given, i, value / (one + exponential(zero - value)))


@compiled_with(lanes)
def likeliest(logits: Floats, count: int, columns: TokenArray, chances: Floats) -> None:
    """Write the columns of the highest of the first ``count`` logits and their chances, as many as
    ``columns`` holds, from the highest on. These logits are written over; those behind, up to whole
    lanes, are next to nothing."""
    most = _highest(logits, count)
    shift, whole = everywhere(-most), everywhere(np.float32(0))
    for place in range(0, count, LANES):
        whole = whole + exponential(load(logits, place) + shift)
    share = np.float32(1) / total(whole)
    level = most
    for found in range(len(columns)):
        if found > 0:
            level = _highest(logits, count)
        best = 0
        while best < count - 1 and logits[0, best] != level:
            best += 1
        columns[found], chances[found] = best, np.exp(level - most) * share
        logits[0, best] = -np.inf


@compiled_with(lanes)
def _highest(logits: Floats, count: int) -> float:
    """The highest of the first ``count`` logits."""
    top = load(logits, 0)
    for place in range(LANES, count, LANES):
        top = larger(top, load(logits, place))
    return highest(top)


__all__ = ["MOST_SEEN", "Work", "guess", "likeliest", "note_in", "start"]
