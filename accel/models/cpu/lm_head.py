"""The lm head, and the greedy verification of draft trees, which computes it for few rows.

Verification follows the argmax from the root. Rows are computed in blocks (the current node of all
trees and its likeliest descendants) of two steps: one thread chooses rows, then all compute tiles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.models.cpu.attention import Floats
from accel.models.cpu.layer_matrices import Matrices, blocks_of, project, quantise_row
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.quantised.activations import Q8Blocks
from accel.models.cpu.request_table import VERIFIES, RequestTable, rows_wanted
from accel.native.aligned_memory import empty, zeros
from accel.native.numba_cache import compiled
from accel.native.simd import LANES, load, maximum, reduce_max

# Measure with `python -m tests.benchmarks forward --model FILE`.
FIRST_ROWS, HEAD_ROWS = 16, 32
"""Rows of the first block and of later ones at most, where the head is in fp32."""

COLUMNS = 8 * BLOCK
"""Logits of a row at a time."""

TOGETHER = 32
"""Rows of a block of several trees, about: one more block costs as much as some rows more."""

_NODE, _CHOSEN, _ROWS, _BLOCK, _IS_FINISHED = range(5)
_ALL_ROWS, _UNFINISHED = range(2)


class GreedyVerification(NamedTuple):
    """The state of the verifications of a forward, which all threads share.

    totals: int64 [2], rows of the current block, and trees that are not verified yet; state: int64
    [requests, 5]: the current node, -1 for the root; how many tokens are chosen; rows in the
    current block, and the first of them; whether it is finished. block: the rows of the block, as
    stored; q8: the same for a quantised head; scores, tokens: float32 and int32 [tiles, rows], the
    largest logit of a block's rows among the columns of a tile, and its token; likeliest: int32
    [rows], the argmax of the block's rows. Of a forward's rows, int32: places, a row's index
    among those of its request in the block, -1 outside of it; path, nodes; chosen, tokens: a
    request's begin with the row of its root.
    """

    totals: NDArray[np.int64]
    state: NDArray[np.int64]
    block: Floats
    q8: Q8Blocks
    scores: Floats
    tokens: TokenArray
    places: TokenArray
    likeliest: TokenArray
    path: TokenArray
    chosen: TokenArray
    most: int
    """Rows of one request in a block."""

    @classmethod
    def allocate(
        cls, requests: int, rows: int, most: int, items: int, like: Floats, like_q8: Q8Blocks
    ) -> GreedyVerification:
        """Allocate for trees of ``rows`` rows in all, the roots' among them, and blocks that hold
        ``most`` rows of one. like: hidden states, [.., hidden_size]; like_q8: the same,
        quantised."""
        together = max(most, TOGETHER, requests)
        return cls(
            np.zeros(2, np.int64),
            np.zeros((requests, 5), np.int64),
            zeros((together, like.shape[1]), like.dtype),
            zeros((together, like_q8.shape[1]), like_q8.dtype),
            empty((items, together), np.float32),
            np.empty((items, together), np.int32),
            np.empty(rows, np.int32),
            np.empty(together, np.int32),
            np.empty(rows, np.int32),
            np.empty(rows, np.int32),
            most,
        )

    def length(self, request: int) -> int:
        """Return the number of tokens chosen for a request."""
        return int(self.state[request, _CHOSEN])


@compiled(borrows=True)
def update_argmax(
    logits: Floats, rows: int, count: int, first: int, scores: Floats, tokens: TokenArray
) -> None:
    """Update the largest logit of each row, and its token: the first of equal ones. The first
    ``count`` logits of each row are those of the tokens from ``first`` on."""
    stride = logits.shape[1]
    for row in range(rows):
        for lane in range(count, (count + LANES - 1) // LANES * LANES):
            logits[row, lane] = -np.inf
        start = row * stride
        top = load(logits, start)
        for lane in range(LANES, count, LANES):
            top = maximum(top, load(logits, start + lane))
        score = reduce_max(top)
        if score > scores[row]:
            lane = 0
            while lane < count - 1 and logits[row, lane] != score:
                lane += 1
            scores[row] = score
            tokens[row] = first + lane


@compiled(borrows=True)
def argmax_of_columns(
    states: Floats,
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


@compiled(borrows=True)
def choose_rows(node: int, parents: TokenArray, rows: TokenArray, most: int) -> int:
    """Choose the rows of the next block: that of ``node`` and those of its first descendants, at
    most ``most``. Writes their indices in the block, -1 for all other rows, and returns how many
    rows it has.

    Nodes are in order of their probability; row 0 is the root's, ``node`` -1.
    """
    rows[:] = -1
    rows[node + 1] = 0
    count = 1
    for below in range(node + 1, len(parents)):
        if count == most:
            break
        if rows[parents[below] + 1] >= 0:
            rows[below + 1] = count
            count += 1
    return count


@compiled(borrows=True)
def all_logits(
    states: Floats, q8: Q8Blocks, first: int, count: int, head: Matrices, logits: Floats
) -> None:
    """Write the logits of ``count`` rows from ``first`` on. q8: a buffer for these rows,
    quantised."""
    rows, blocks = states[first : first + count], (0, blocks_of(head))
    for row in range(count):
        quantise_row(rows, row, (0, states.shape[1] // BLOCK), head, q8)
    project(rows, 0, count, head, 0, blocks, logits, 0, q8)


@compiled(borrows=True)
def begin_verification(verification: GreedyVerification, requests: RequestTable) -> None:
    """Start at the root of each tree."""
    verification.totals[_ALL_ROWS] = verification.totals[_UNFINISHED] = 0
    for request in range(len(requests)):
        state = verification.state[request]
        state[_NODE], state[_CHOSEN], state[_ROWS], state[_BLOCK] = -1, 0, 0, 0
        state[_IS_FINISHED] = 1 - requests[request, VERIFIES]
        verification.totals[_UNFINISHED] += requests[request, VERIFIES]
        if requests[request, VERIFIES] > 0:
            first, last = rows_wanted(requests, request)
            verification.places[first:last] = -1


@compiled(borrows=True)
def is_finished(verification: GreedyVerification) -> bool:
    """Return whether the next token after the path is known, for all trees."""
    return verification.totals[_UNFINISHED] == 0


@compiled(borrows=True)
def advance(
    verification: GreedyVerification,
    states: Floats,
    tokens: TokenArray,
    parents: TokenArray,
    requests: RequestTable,
    head: Matrices,
    items: int,
) -> None:
    """Follow the argmax in each tree as far as the current block goes, and choose the next block
    unless that finishes the verification. A path and its tokens equal those of ``verify_tree`` with
    the argmax of every row.

    items: tiles of the head whose argmax is known; states: normalised hidden states of a forward's
    rows; tokens: int32 [rows]; parents: int32 [rows], see ``ForwardOutput``.
    """
    for row in range(verification.totals[_ALL_ROWS]):
        best = 0
        for item in range(1, items):
            if verification.scores[item, row] > verification.scores[best, row]:
                best = item
        verification.likeliest[row] = verification.tokens[best, row]
    for request in range(len(requests)):
        if verification.state[request, _IS_FINISHED] == 0:
            first, last = rows_wanted(requests, request)
            _follow(
                verification.state[request],
                verification.likeliest,
                verification.places[first:last],
                verification.path[first:last],
                verification.chosen[first:last],
                tokens[first:last],
                parents[first + 1 : last],
            )
            verification.totals[_UNFINISHED] -= verification.state[request, _IS_FINISHED]
    unfinished, rows = verification.totals[_UNFINISHED], 0
    share = min(verification.most, max(TOGETHER // max(unfinished, 1), 1))
    for request in range(len(requests)):
        state = verification.state[request]
        if state[_IS_FINISHED] == 0:
            first, last = rows_wanted(requests, request)
            row_lanes = verification.places[first:last]
            most = min(FIRST_ROWS, share) if state[_CHOSEN] == 0 else share
            state[_BLOCK] = rows
            state[_ROWS] = choose_rows(state[_NODE], parents[first + 1 : last], row_lanes, most)
            for row in range(last - first):
                if row_lanes[row] >= 0:
                    _put_in_block(verification, states, first + row, rows + row_lanes[row], head)
            rows += state[_ROWS]
    verification.totals[_ALL_ROWS] = rows


@compiled(borrows=True)
def _follow(
    state: NDArray[np.int64],
    likeliest: TokenArray,
    rows: TokenArray,
    path: TokenArray,
    chosen: TokenArray,
    tokens: TokenArray,
    parents: TokenArray,
) -> None:
    """Follow the argmax in one tree as far as its rows in the block go."""
    node, count = state[_NODE], state[_CHOSEN]
    while rows[node + 1] >= 0:
        token = likeliest[state[_BLOCK] + rows[node + 1]]
        chosen[count] = token
        count += 1
        child = node + 1
        while child < len(parents) and (parents[child] != node or tokens[child + 1] != token):
            child += 1
        if child == len(parents):
            state[_IS_FINISHED] = 1
            break
        path[count - 1] = child
        node = child
    state[_NODE], state[_CHOSEN] = node, count


@compiled(borrows=True)
def _put_in_block(
    verification: GreedyVerification, states: Floats, row: int, lane: int, head: Matrices
) -> None:
    hidden_size = states.shape[1]
    for i in range(hidden_size):
        verification.block[lane, i] = states[row, i]
    quantise_row(verification.block, lane, (0, hidden_size // BLOCK), head, verification.q8)


@compiled(borrows=True)
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
    rows = verification.totals[_ALL_ROWS]
    scores, tokens = verification.scores[item], verification.tokens[item]
    arguments = first, last, vocabulary, logits, scores, tokens
    argmax_of_columns(verification.block, verification.q8, rows, head, *arguments)
