"""The walk along a draft tree, and the head for the rows that it comes to.

A row's logits are only needed when the walk comes to its node, and of those only which is the
largest. Rows are computed in blocks: the node that the walk has come to and its likeliest
descendants, more of them where the walk left a block behind it, since a small block takes as long
to read the head as to compute. Logits exist for some columns at a time, in the first level of
caches. Two threads have half of the vocabulary each, meet after every block and then walk alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.models.cpu import barrier as meeting
from accel.models.cpu import layer_matrices, matmul
from accel.models.cpu.attention import Floats, Stored
from accel.models.cpu.barrier import meet
from accel.models.cpu.layer_matrices import Matrices, blocks_of, prepare, project
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.quantised.activations import Records
from accel.native import simd as lanes
from accel.native.aligned_memory import empty, zeros
from accel.native.cpu_features import HAS_TILES
from accel.native.numba_cache import compiled_with
from accel.native.simd import LANES, highest, larger, load

FIRST_ROWS, HEAD_ROWS = 32 if HAS_TILES else 16, 32
"""Rows of the first block and of later ones at most: by tile registers as many as two tiles have
take hardly longer than one, and to come back for more is to read the head again."""

COLUMNS = 8 * BLOCK
"""Logits of a row at a time."""


class Found(NamedTuple):
    """The highest logit of rows in each side's half of the vocabulary, and its token. Blocks take
    turns with two places, so that none is written while the other side still reads it.

    scores: float32 [2, 2, HEAD_ROWS], by turn and side; tokens: int32, the same.
    """

    scores: Floats
    tokens: TokenArray

    @classmethod
    def room(cls) -> Found:
        """Shared by both sides."""
        return cls(np.empty((2, 2, HEAD_ROWS), np.float32), np.empty((2, 2, HEAD_ROWS), np.int32))


class WalkRoom(NamedTuple):
    """What one side writes in a walk.

    states: the rows of a block, as stored; records: the same, for a quantised head; logits: float32
    [HEAD_ROWS, COLUMNS]; places: int32 [nodes + 1], the place of a row in the block, -1 where it is
    not in it; likeliest: int32 [HEAD_ROWS], the tokens of the block's rows; path: int32, nodes;
    chosen: int32, tokens.
    """

    states: Stored
    records: Records
    logits: Floats
    places: TokenArray
    likeliest: TokenArray
    path: TokenArray
    chosen: TokenArray

    @classmethod
    def of(cls, rows: int, like: Stored, like_records: Records) -> WalkRoom:
        """Room for trees of ``rows`` rows, the root's among them. like: states, [.., width];
        like_records: what they are prepared in."""
        return cls(
            zeros((HEAD_ROWS, like.shape[1]), like.dtype),
            zeros((HEAD_ROWS, like_records.shape[1]), like_records.dtype),
            empty((HEAD_ROWS, COLUMNS), np.float32),
            np.empty(rows, np.int32),
            np.empty(HEAD_ROWS, np.int32),
            np.empty(rows, np.int32),
            np.empty(rows, np.int32),
        )


@compiled_with(lanes, matmul, borrows=True)
def note_highest(
    logits: Floats, rows: int, count: int, first: int, scores: Floats, tokens: TokenArray
) -> None:
    """Note tokens with higher logits than those before; of equals the first. The first ``count``
    logits of each row are those of the tokens from ``first`` on."""
    width = logits.shape[1]
    for row in range(rows):
        for place in range(count, (count + LANES - 1) // LANES * LANES):
            logits[row, place] = -np.inf
        start = row * width
        top = load(logits, start)
        for place in range(LANES, count, LANES):
            top = larger(top, load(logits, start + place))
        score = highest(top)
        if score > scores[row]:
            place = 0
            while place < count - 1 and logits[row, place] != score:
                place += 1
            scores[row] = score
            tokens[row] = first + place


@compiled_with(lanes, layer_matrices, matmul, borrows=True)
def likeliest_tokens(
    states: Stored,
    records: Records,
    rows: int,
    head: Matrices,
    first_block: int,
    last_block: int,
    vocabulary: int,
    logits: Floats,
    scores: Floats,
    tokens: TokenArray,
) -> None:
    """Write the highest logit of each row among the tokens of blocks from ``first_block`` to
    before ``last_block``, and the first token that has it. records: room for the rows as
    the head takes them."""
    prepare(states, rows, head, records)
    for row in range(rows):
        scores[row], tokens[row] = -np.inf, min(first_block * BLOCK, vocabulary - 1)
    step = COLUMNS // BLOCK
    for block in range(first_block, last_block, step):
        blocks = min(step, last_block - block)
        project(states, 0, rows, head, 0, (block, block + blocks), logits, 0, records)
        count = min(blocks * BLOCK, vocabulary - block * BLOCK)
        note_highest(logits, rows, count, block * BLOCK, scores, tokens)


@compiled_with(borrows=True)
def choose_rows(node: int, parents: TokenArray, places: TokenArray, most: int) -> int:
    """Write the places in the next block of ``node``'s row and of those of its first descendants,
    ``most`` rows in all; -1 for all other rows. Returns how many there are.

    Nodes stand in the order of their probability; row 0 is the root's, ``node`` -1.
    """
    places[:] = -1
    places[node + 1] = 0
    count = 1
    for below in range(node + 1, len(parents)):
        if count == most:
            break
        if places[parents[below] + 1] >= 0:
            places[below + 1] = count
            count += 1
    return count


@compiled_with(lanes, layer_matrices, matmul, borrows=True)
def all_logits(
    states: Stored, records: Records, first: int, count: int, head: Matrices, logits: Floats
) -> None:
    """Write the logits of ``count`` rows from ``first`` on. records: room for the rows as the head
    takes them."""
    wanted, blocks = states[first : first + count], (0, blocks_of(head))
    prepare(wanted, count, head, records)
    project(wanted, 0, count, head, 0, blocks, logits, 0, records)


@compiled_with(lanes, layer_matrices, matmul, meeting, borrows=True, inner=True)
def walk(
    states: Stored,
    tokens: TokenArray,
    parents: TokenArray,
    head: Matrices,
    vocabulary: int,
    room: WalkRoom,
    found: Found,
    is_shared: bool,
    meeting: NDArray[np.int64],
    side: int,
    number: int,
) -> int:
    """Write the nodes of the path and the tokens chosen, as ``verifier.walk`` by the likeliest
    token; returns how many tokens.

    states: of the root and the nodes, normalised; tokens: int32 [>= nodes + 1], of the root and the
    nodes; parents: int32 [nodes]. Sides meet by the numbers after ``number``, at most once for
    every row.
    """
    rows, width = len(parents) + 1, states.shape[1]
    places = room.places[:rows]
    places[:] = -1
    blocks = (vocabulary + BLOCK - 1) // BLOCK
    half = blocks // 2 if is_shared else blocks
    first_block, last_block = (0, half) if side == 0 else (half, blocks)
    node, turn, count = -1, 0, 0
    while True:
        if places[node + 1] < 0:
            turn = 1 - turn
            most = FIRST_ROWS if count == 0 else HEAD_ROWS
            chosen = choose_rows(node, parents, places, most)
            for row in range(rows):
                if places[row] >= 0:
                    for i in range(width):
                        room.states[places[row], i] = states[row, i]
            likeliest_tokens(
                room.states,
                room.records,
                chosen,
                head,
                first_block,
                last_block,
                vocabulary,
                room.logits,
                found.scores[turn, side],
                found.tokens[turn, side],
            )
            if is_shared:
                number += 1
                meet(meeting, side, number)
            for row in range(chosen):
                other = is_shared and found.scores[turn, 1, row] > found.scores[turn, 0, row]
                room.likeliest[row] = found.tokens[turn, 1 if other else 0, row]
        token = room.likeliest[places[node + 1]]
        room.chosen[count] = token
        count += 1
        child = node + 1
        while child < len(parents) and (parents[child] != node or tokens[child + 1] != token):
            child += 1
        if child == len(parents):
            return count
        room.path[count - 1] = child
        node = child


__all__ = [
    "COLUMNS",
    "FIRST_ROWS",
    "HEAD_ROWS",
    "Found",
    "WalkRoom",
    "all_logits",
    "choose_rows",
    "likeliest_tokens",
    "note_highest",
    "walk",
]
