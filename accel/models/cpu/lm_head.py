"""The lm head, and the greedy verification of a draft tree, which computes it for few rows.

Verification follows the argmax from the root. Rows are computed in blocks (the current node and its
likeliest descendants) of two steps: one thread chooses the rows, then all compute tiles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.models.cpu import layer_matrices, matmul
from accel.models.cpu.attention import Floats, Stored
from accel.models.cpu.layer_matrices import Matrices, blocks_of, project, quantise_row
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.quantised.activations import Q8Blocks
from accel.native import simd
from accel.native.aligned_memory import empty, zeros
from accel.native.cpu_features import HAS_TILES
from accel.native.numba_cache import compiled_with
from accel.native.simd import LANES, load, maximum, reduce_max

FIRST_ROWS, HEAD_ROWS = 32 if HAS_TILES else 16, 32
"""Rows of the first block and of later ones at most, where the head is packed. With tile registers
the rows of two tiles take hardly longer than one, and every further block reads the head again."""

COLUMNS = 8 * BLOCK
"""Logits of a row at a time."""

_NODE, _CHOSEN, _ROWS, _IS_FINISHED = range(4)


class GreedyVerification(NamedTuple):
    """The state of a verification, which all threads share.

    state: int64 [4]: the current node, -1 for the root; how many tokens are chosen; the rows of the
    current block; whether it is finished. block: the rows of the block, as stored; q8: the same
    for a quantised head; scores, tokens: float32 and int32 [tiles, rows], the largest logit of a
    block's rows among the columns of a tile, and its token; places: int32 [nodes + 1], a row's
    place in the block, -1 outside of it; likeliest: int32 [rows], the argmax of the block's rows;
    path: int32, nodes; chosen: int32, tokens.
    """

    state: NDArray[np.int64]
    block: Stored
    q8: Q8Blocks
    scores: Floats
    tokens: TokenArray
    places: TokenArray
    likeliest: TokenArray
    path: TokenArray
    chosen: TokenArray

    @classmethod
    def allocate(
        cls, rows: int, most: int, items: int, like: Stored, like_q8: Q8Blocks
    ) -> GreedyVerification:
        """Allocate for trees of ``rows`` rows, the root's among them, and blocks of ``most`` rows.
        like: hidden states, [.., hidden_size]; like_q8: the same, quantised."""
        return cls(
            np.zeros(4, np.int64),
            zeros((most, like.shape[1]), like.dtype),
            zeros((most, like_q8.shape[1]), like_q8.dtype),
            empty((items, most), np.float32),
            np.empty((items, most), np.int32),
            np.empty(rows, np.int32),
            np.empty(most, np.int32),
            np.empty(rows, np.int32),
            np.empty(rows, np.int32),
        )

    @property
    def length(self) -> int:
        """How many tokens are chosen."""
        return int(self.state[_CHOSEN])


@compiled_with(simd, matmul, borrows=True)
def update_argmax(
    logits: Floats, rows: int, count: int, first: int, scores: Floats, tokens: TokenArray
) -> None:
    """Update the largest logit of each row, and its token: the first of equal ones. The first
    ``count`` logits of each row are those of the tokens from ``first`` on."""
    stride = logits.shape[1]
    for row in range(rows):
        for place in range(count, (count + LANES - 1) // LANES * LANES):
            logits[row, place] = -np.inf
        start = row * stride
        top = load(logits, start)
        for place in range(LANES, count, LANES):
            top = maximum(top, load(logits, start + place))
        score = reduce_max(top)
        if score > scores[row]:
            place = 0
            while place < count - 1 and logits[row, place] != score:
                place += 1
            scores[row] = score
            tokens[row] = first + place


@compiled_with(simd, layer_matrices, matmul, borrows=True)
def argmax_of_columns(
    states: Stored,
    q8: Q8Blocks,
    rows: int,
    head: Matrices,
    first_block: int,
    last_block: int,
    vocabulary: int,
    logits: Floats,
    scores: Floats,
    tokens: TokenArray,
) -> None:
    """Write the largest logit of each row among the tokens of the blocks from ``first_block`` to
    before ``last_block``, and the first token that has it. q8: the rows, quantised, for a head
    that is quantised."""
    for row in range(rows):
        scores[row], tokens[row] = -np.inf, min(first_block * BLOCK, vocabulary - 1)
    step = COLUMNS // BLOCK
    for block in range(first_block, last_block, step):
        blocks = min(step, last_block - block)
        project(states, 0, rows, head, 0, (block, block + blocks), logits, 0, q8)
        count = min(blocks * BLOCK, vocabulary - block * BLOCK)
        update_argmax(logits, rows, count, block * BLOCK, scores, tokens)


@compiled_with(borrows=True)
def choose_rows(node: int, parents: TokenArray, places: TokenArray, most: int) -> int:
    """Choose the rows of the next block: that of ``node`` and those of its first descendants, at
    most ``most``. Writes their places in the block, -1 for all other rows, and returns how many
    rows it has.

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
    states: Stored, q8: Q8Blocks, first: int, count: int, head: Matrices, logits: Floats
) -> None:
    """Write the logits of ``count`` rows from ``first`` on. q8: a buffer for these rows,
    quantised."""
    wanted, blocks = states[first : first + count], (0, blocks_of(head))
    for row in range(count):
        quantise_row(wanted, row, (0, states.shape[1] // BLOCK), head, q8)
    project(wanted, 0, count, head, 0, blocks, logits, 0, q8)


@compiled_with(borrows=True)
def begin_verification(verification: GreedyVerification, rows: int) -> None:
    """Start at the root of a tree of ``rows`` rows, the root's among them."""
    verification.places[:rows] = -1
    verification.state[_NODE], verification.state[_CHOSEN] = -1, 0
    verification.state[_ROWS], verification.state[_IS_FINISHED] = 0, 0


@compiled_with(borrows=True)
def is_finished(verification: GreedyVerification) -> bool:
    """Whether the next token after the path is known."""
    return verification.state[_IS_FINISHED] > 0


@compiled_with(simd, layer_matrices, borrows=True)
def advance(
    verification: GreedyVerification,
    states: Stored,
    tokens: TokenArray,
    parents: TokenArray,
    head: Matrices,
    items: int,
) -> None:
    """Follow the argmax as far as the current block goes, and choose the next block unless that
    finishes the verification. The path and the tokens equal those of ``verify_tree`` with the
    argmax of every row.

    items: tiles of the head whose argmax is known; states: normalised hidden states of the root and
    the nodes; tokens: int32 [>= nodes + 1], of the root and the nodes; parents: int32 [nodes].
    """
    rows, hidden_size = len(parents) + 1, states.shape[1]
    places, node, count = (
        verification.places[:rows],
        verification.state[_NODE],
        verification.state[_CHOSEN],
    )
    for row in range(verification.state[_ROWS]):
        best = 0
        for item in range(1, items):
            if verification.scores[item, row] > verification.scores[best, row]:
                best = item
        verification.likeliest[row] = verification.tokens[best, row]
    while places[node + 1] >= 0:
        token = verification.likeliest[places[node + 1]]
        verification.chosen[count] = token
        count += 1
        verification.state[_CHOSEN] = count
        child = node + 1
        while child < len(parents) and (parents[child] != node or tokens[child + 1] != token):
            child += 1
        if child == len(parents):
            verification.state[_IS_FINISHED] = 1
            return
        verification.path[count - 1] = child
        node = child
    most = min(FIRST_ROWS, len(verification.block)) if count == 0 else len(verification.block)
    verification.state[_NODE], verification.state[_ROWS] = (
        node,
        choose_rows(node, parents, places, most),
    )
    for row in range(rows):
        if places[row] >= 0:
            for i in range(hidden_size):
                verification.block[places[row], i] = states[row, i]
            quantise_row(
                verification.block, places[row], (0, hidden_size // BLOCK), head, verification.q8
            )


@compiled_with(simd, layer_matrices, matmul, borrows=True)
def head_argmax(
    verification: GreedyVerification,
    item: int,
    first: int,
    last: int,
    head: Matrices,
    vocabulary: int,
    logits: Floats,
) -> None:
    """Compute the argmax of the current block's rows over the head's column blocks from ``first``
    to before ``last``. logits: a buffer, float32 [rows, ``COLUMNS``]."""
    rows = verification.state[_ROWS]
    scores, tokens = verification.scores[item], verification.tokens[item]
    found = first, last, vocabulary, logits, scores, tokens
    argmax_of_columns(verification.block, verification.q8, rows, head, *found)


__all__ = [
    "COLUMNS",
    "FIRST_ROWS",
    "HEAD_ROWS",
    "GreedyVerification",
    "advance",
    "all_logits",
    "argmax_of_columns",
    "begin_verification",
    "choose_rows",
    "head_argmax",
    "is_finished",
    "update_argmax",
]
