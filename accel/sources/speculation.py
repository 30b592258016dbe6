"""Trees of a speculator, grown in one call of compiled code.

A node is one step of a small network: from the state before it, the token, and the token that
followed the text's longest match there. Nodes are taken best first while their paths are probable
enough.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.experimental import structref
from numpy.typing import NDArray

from accel import compiled_parts, lanes, matmul, speculator
from accel.compiled_parts import gate
from accel.draft_tree import TokenArray
from accel.lanes import LANES, everywhere, exponential, highest, larger, load, store, total
from accel.matmul import BLOCK, multiply_row, narrow, wide
from accel.rows import BLOCKED
from accel.sources import prompt, speculated_head
from accel.sources.compiled import FieldsType, compiled_with
from accel.sources.prompt import match_from
from accel.sources.speculated_head import MOST_COLUMNS, Head, cover, forget
from accel.speculator import LENGTHS, Floats, Halves, Speculator

MOST_NODES, MOST_SEEN = 8, 4
"""Nodes of a tree, and how many of them are looked behind: the root and those next to it, since
each takes some microseconds."""

MOST_DEPTH = MOST_SEEN
CHILDREN = 3
"""Likeliest tokens that are looked at behind a node."""
MOST_KEPT = MOST_SEEN * CHILDREN

LEAST_SEEN = 0.2
"""Chance of a path from which it is worth to look behind its end."""


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
    tokens: TokenArray
    parents: TokenArray
    chances: Floats
    seen: TokenArray
    row_tokens: TokenArray
    row_offsets: TokenArray
    row_mask: Floats

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
            np.zeros(MOST_NODES, np.int32),
            np.zeros(MOST_NODES, np.int32),
            np.zeros(MOST_NODES, np.float32),
            np.zeros(MOST_NODES, np.int32),
            np.zeros(MOST_NODES + 1, np.int32),
            np.zeros(MOST_NODES + 1, np.int32),
            np.zeros((MOST_NODES + 1) ** 2, np.float32),
        )


@structref.register
class _DeskType(FieldsType):
    """Compiled form of ``Desk``."""


class Desk(structref.StructRefProxy):
    """All that growing reads and writes, as one argument, see ``mixture_room.Room``."""


structref.define_proxy(Desk, _DeskType, ["tables", "head", "work", "text", "previous", "newest"])


@njit(cache=True)
def desk_of(
    tables: Speculator,
    head: Head,
    work: Work,
    text: TokenArray,
    previous: TokenArray,
    newest: TokenArray,
) -> Desk:
    """A desk that holds these; the last three are those of ``prompt.PromptIndex``."""
    return Desk(tables, head, work, text, previous, newest)


@compiled_with(matmul)
def note_in(known: Halves, last: NDArray[Any], middle: NDArray[Any]) -> None:
    """Keep the model's states of a row, see ``Model.state_of``, for the next tree."""
    width = len(last)
    for i in range(width):
        known[0, i] = narrow(wide(last[i]), known)
        known[0, width + i] = narrow(wide(middle[i]), known)


@compiled_with()
def lay_out(work: Work, count: int, last: int) -> None:
    """Write the rows of the text's ``last`` token and of ``count`` nodes behind it."""
    rows = count + 1
    mask = work.row_mask[: rows * rows].reshape(rows, rows)
    mask[:] = BLOCKED
    work.row_tokens[0], work.row_offsets[0] = last, 0
    mask[0, 0] = 0
    for node in range(count):
        above = work.parents[node] + 1
        work.row_tokens[node + 1] = work.tokens[node]
        work.row_offsets[node + 1] = work.row_offsets[above] + 1
        mask[node + 1, : node + 1] = mask[above, : node + 1]
        mask[node + 1, node + 1] = 0


@compiled_with(speculated_head)
def begin_in(desk: Any, stop: int) -> None:
    """Begin another text, which ends at ``stop``."""
    forget(desk.tables, desk.head)
    cover(desk.tables, desk.head, desk.text, stop)


@compiled_with(lanes, compiled_parts, matmul, speculator)
def _step(
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
def _likeliest(logits: Floats, count: int, columns: TokenArray, chances: Floats) -> None:
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


@compiled_with()
def _write_path(work: Work, node: int, text: TokenArray, stop: int) -> int:
    """Write the tokens of the path to ``node`` behind the text; returns where they end."""
    depth, above = 0, node
    while above >= 0:
        depth, above = depth + 1, work.parents[above]
    above = node
    for place in range(stop + depth - 1, stop - 1, -1):
        text[place] = work.tokens[above]
        above = work.parents[above]
    return stop + depth


@compiled_with(lanes, matmul, compiled_parts, prompt, speculator)
def _look_behind(desk: Any, node: int, seen: int, stop: int, length: int, place: int) -> None:
    """Write the logits of what follows a node, -1 for the root, whose match is given. ``seen``:
    nodes that were looked behind before it."""
    work, text = desk.work, desk.text
    end = stop
    if node >= 0:
        end = _write_path(work, node, text, stop)
        length, place = match_from(text, desk.previous, desk.newest[text[end - 1]], end)
        above = work.parents[node]
        begin = work.seen[above] if above >= 0 else 0
        for i in range(work.sums.shape[1]):
            work.sums[seen, i] = work.sums[begin, i]
        work.seen[node] = seen
    candidate = text[place] if length > 0 and place < end else -1
    known = min(length, LENGTHS - 1) if candidate >= 0 else 0
    _step(desk.tables, desk.head, work, seen, text[end - 1], known, candidate)


@compiled_with(lanes, matmul, compiled_parts, prompt, speculated_head, speculator)
def speculate_in(desk: Any, stop: int, length: int, place: int, most: int, least: float) -> int:
    """Grow the tree behind the text, which ends at ``stop``, from the state in ``work.known``.

    Returns how many nodes it has, ``most`` and ``MOST_NODES`` at most, all with chances of
    ``least`` or more. length, place: ``prompt.ending_match``.
    """
    cover(desk.tables, desk.head, desk.text, stop)
    tables, head, work = desk.tables, desk.head, desk.work
    multiply_row(work.known, tables.state, len(tables.state), tables.state.shape[1], work.added)
    for i in range(work.sums.shape[1]):
        work.sums[0, i] = work.added[0, i] + tables.biases[0, i]
    kept_tokens, kept_parents = np.empty(MOST_KEPT, np.int32), np.empty(MOST_KEPT, np.int32)
    kept_chances = np.empty(MOST_KEPT, np.float32)
    columns, chances = np.empty(CHILDREN, np.int32), np.empty(CHILDREN, np.float32)
    node, chance = -1, np.float32(1)
    kept = taken = seen = 0
    while True:
        is_known = node < 0 or work.tokens[node] < len(desk.newest)
        if seen < MOST_SEEN and chance >= LEAST_SEEN and is_known:
            _look_behind(desk, node, seen, stop, length, place)
            seen += 1
            _likeliest(work.logits, head.counts[0], columns, chances)
            for child in range(CHILDREN):
                if chance * chances[child] >= least:
                    kept_tokens[kept], kept_parents[kept] = head.tokens[columns[child]], node
                    kept_chances[kept] = chance * chances[child]
                    kept += 1
        best = int(np.argmax(kept_chances[:kept])) if kept else 0
        if not kept or kept_chances[best] <= 0:
            return taken
        node, chance = taken, kept_chances[best]
        work.tokens[taken], work.parents[taken] = kept_tokens[best], kept_parents[best]
        work.chances[taken] = chance
        kept_chances[best] = 0
        taken += 1
        if taken >= min(most, MOST_NODES):
            return taken


__all__ = [
    "MOST_DEPTH",
    "MOST_NODES",
    "Desk",
    "Work",
    "begin_in",
    "desk_of",
    "speculate_in",
]
