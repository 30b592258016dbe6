"""The walk along a draft tree, and the head for the rows that it comes to.

A row's logits are only needed when the walk comes to its node, and of those only which is the
largest. Rows are computed in blocks: the node that the walk has come to and its likeliest
descendants. Logits exist for some columns at a time, in the first level of caches. A block is two
steps of a forward: one thread walks and chooses its rows, then all take columns of the head.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.models.cpu import layer_matrices, matmul
from accel.models.cpu.attention import Floats, Stored
from accel.models.cpu.layer_matrices import Matrices, blocks_of, prepare, project
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.quantised.activations import Records
from accel.native import simd
from accel.native.aligned_memory import empty, zeros
from accel.native.cpu_features import HAS_TILES
from accel.native.numba_cache import compiled_with
from accel.native.simd import LANES, highest, larger, load

FIRST_ROWS, HEAD_ROWS = 32 if HAS_TILES else 16, 32
"""Rows of the first block and of later ones at most, where the head is packed: by tile registers as
many as two tiles have take hardly longer than one, and to come back for more is to read the head
again."""

COLUMNS = 8 * BLOCK
"""Logits of a row at a time."""

_NODE, _CHOSEN, _ROWS, _IS_OVER = range(4)


class Walk(NamedTuple):
    """What all threads know of a walk.

    state: int64 [4], the node that it has come to, -1 for the root, how many tokens it has chosen,
    rows of the block at hand, and whether it is over; block: the rows of a block, as stored;
    records: the same, for a quantised head; scores, tokens: the highest logit of a block's rows and
    its token among the columns that were taken as one item, float32 and int32 [items, rows];
    places: int32 [nodes + 1], the place of a row in the block, -1 where it is not in it; likeliest:
    int32 [rows], the tokens of the block's rows; path: int32, nodes; chosen: int32, tokens.
    """

    state: NDArray[np.int64]
    block: Stored
    records: Records
    scores: Floats
    tokens: TokenArray
    places: TokenArray
    likeliest: TokenArray
    path: TokenArray
    chosen: TokenArray

    @classmethod
    def room(cls, rows: int, most: int, items: int, like: Stored, like_records: Records) -> Walk:
        """Room for trees of ``rows`` rows, the root's among them, by blocks of at most ``most``.
        like: states, [.., width]; like_records: what they are prepared in."""
        return cls(
            np.zeros(4, np.int64),
            zeros((most, like.shape[1]), like.dtype),
            zeros((most, like_records.shape[1]), like_records.dtype),
            empty((items, most), np.float32),
            np.empty((items, most), np.int32),
            np.empty(rows, np.int32),
            np.empty(most, np.int32),
            np.empty(rows, np.int32),
            np.empty(rows, np.int32),
        )

    @property
    def length(self) -> int:
        """How many tokens it has chosen."""
        return int(self.state[_CHOSEN])


@compiled_with(simd, matmul, borrows=True)
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


@compiled_with(simd, layer_matrices, matmul, borrows=True)
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
    before ``last_block``, and the first token that has it. records: the rows as the head takes
    them."""
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


@compiled_with(simd, layer_matrices, matmul, borrows=True)
def all_logits(
    states: Stored, records: Records, first: int, count: int, head: Matrices, logits: Floats
) -> None:
    """Write the logits of ``count`` rows from ``first`` on. records: room for the rows as the head
    takes them."""
    wanted, blocks = states[first : first + count], (0, blocks_of(head))
    for row in range(count):
        prepare(wanted, row, (0, states.shape[1] // BLOCK), head, records)
    project(wanted, 0, count, head, 0, blocks, logits, 0, records)


@compiled_with(borrows=True)
def begin_walk(walk: Walk, rows: int) -> None:
    """Stand at the root of a tree of so many rows, the root's among them; none is known."""
    walk.places[:rows] = -1
    walk.state[_NODE], walk.state[_CHOSEN] = -1, 0
    walk.state[_ROWS], walk.state[_IS_OVER] = 0, 0


@compiled_with(borrows=True)
def is_over(walk: Walk) -> bool:
    """Whether it has come to its end."""
    return walk.state[_IS_OVER] > 0


@compiled_with(simd, layer_matrices, borrows=True)
def walk_on(
    walk: Walk,
    states: Stored,
    tokens: TokenArray,
    parents: TokenArray,
    head: Matrices,
    items: int,
) -> None:
    """Take what ``items`` parts of the head have found of the block at hand, walk on, and choose
    the next block where the walk is not over: the nodes of the path and the tokens chosen are those
    of ``verifier.walk`` by the likeliest token.

    states: of the root and the nodes, normalised; tokens: int32 [>= nodes + 1], of the root and the
    nodes; parents: int32 [nodes].
    """
    rows, width = len(parents) + 1, states.shape[1]
    places, node, count = walk.places[:rows], walk.state[_NODE], walk.state[_CHOSEN]
    for row in range(walk.state[_ROWS]):
        best = 0
        for item in range(1, items):
            if walk.scores[item, row] > walk.scores[best, row]:
                best = item
        walk.likeliest[row] = walk.tokens[best, row]
    while places[node + 1] >= 0:
        token = walk.likeliest[places[node + 1]]
        walk.chosen[count] = token
        count += 1
        walk.state[_CHOSEN] = count
        child = node + 1
        while child < len(parents) and (parents[child] != node or tokens[child + 1] != token):
            child += 1
        if child == len(parents):
            walk.state[_IS_OVER] = 1
            return
        walk.path[count - 1] = child
        node = child
    most = min(FIRST_ROWS, len(walk.block)) if count == 0 else len(walk.block)
    walk.state[_NODE], walk.state[_ROWS] = node, choose_rows(node, parents, places, most)
    for row in range(rows):
        if places[row] >= 0:
            for i in range(width):
                walk.block[places[row], i] = states[row, i]
            prepare(walk.block, places[row], (0, width // BLOCK), head, walk.records)


@compiled_with(simd, layer_matrices, matmul, borrows=True)
def look_at(
    walk: Walk, item: int, first: int, last: int, head: Matrices, vocabulary: int, logits: Floats
) -> None:
    """Find the likeliest tokens of the block at hand in blocks of the head's columns, from the
    first to before the last. logits: room, float32 [rows, ``COLUMNS``]."""
    rows = walk.state[_ROWS]
    scores, tokens = walk.scores[item], walk.tokens[item]
    found = first, last, vocabulary, logits, scores, tokens
    likeliest_tokens(walk.block, walk.records, rows, head, *found)


__all__ = [
    "COLUMNS",
    "FIRST_ROWS",
    "HEAD_ROWS",
    "Walk",
    "all_logits",
    "begin_walk",
    "choose_rows",
    "is_over",
    "likeliest_tokens",
    "look_at",
    "note_highest",
    "walk_on",
]
