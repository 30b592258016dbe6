"""The forward of a decoder built like Llama, as one compiled function.

It is a row of steps, and each of these some items that may be computed in any order by any thread:
columns of a matrix for all rows, a head, some rows of a norm. Threads take items until none is
left, and then go on to the next step together, see ``barrier``. A row's numbers depend neither on
the other rows of a forward, nor on the threads, nor on where the rows stand that it attends: to the
last bit they are those of plain decoding, so the text is, in bf16 and where tokens are drawn, too.
Activations are fp32, rounded to eight bits where they are multiplied with quantised weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.models.cpu import barrier as barriers
from accel.models.cpu import layer_matrices, thread_state
from accel.models.cpu import layers as compiled_layers
from accel.models.cpu import lm_head as compiled_head
from accel.models.cpu import parts as compiled_parts
from accel.models.cpu import task as tasks
from accel.models.cpu.attention import Floats
from accel.models.cpu.barrier import (
    Barrier,
    await_after,
    is_last_to_arrive,
    is_to_end,
    join,
    linger,
    open_step,
    take,
)
from accel.models.cpu.layer_matrices import blocks_of, prepare, project
from accel.models.cpu.layers import HEADS, LAYER_STEPS, ROWS, between, compute, cuts_of, items_of
from accel.models.cpu.lm_head import begin_walk, is_over, look_at, walk_on
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.parts import normalise
from accel.models.cpu.task import Given, Wanted
from accel.models.cpu.thread_state import OpenThreadState, opened
from accel.native.numba_cache import compiled_with

_PARTS = (
    *(compiled_head, compiled_layers, compiled_parts, thread_state),
    *(barriers, layer_matrices, tasks),
)


@compiled_with(borrows=True)
def steps_of(layers: int, logits: int, parents: int, walks: bool) -> int:
    """How many steps a forward has at most.

    Where nothing is wanted it ends with the keys and values of the last layer. Otherwise the last
    norm follows the layers, and then the logits, or a walk: a step for one thread, and one in which
    all look at a block of rows, by turns.
    """
    if walks:
        return layers * LAYER_STEPS + 1 + 2 * (parents + 2)
    return layers * LAYER_STEPS + 2 if logits > 0 else (layers - 1) * LAYER_STEPS + HEADS + 1


@compiled_with(*_PARTS)
def forward(
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int32],
    mask: Floats,
    past: int,
    logits: Floats,
    parents: TokenArray,
    walks: bool,
    own: Any,
    barrier: Barrier,
    thread: int,
    first: int,
) -> None:
    """Compute a forward with others, see ``Given`` and ``Wanted``, which Python would take as long
    to hand over as all they hold. own: a ``ThreadState``; first: the number of the first step.

    A walk's tokens and path stand in the thread's ``walk``. Keys and values are written behind
    those of the committed rows.
    """
    forward_at(
        Given(tokens, offsets, mask, past),
        Wanted(logits, parents, walks),
        opened(own),
        barrier,
        thread,
        first,
    )


@compiled_with(*_PARTS, borrows=True, inner=True)
def forward_at(
    given: Given, wanted: Wanted, own: OpenThreadState, barrier: Barrier, thread: int, first: int
) -> None:
    """``forward``. Thread 0 begins with the first step, others where they find it."""
    layers = len(own.weights.qkv)
    last = first + steps_of(layers, len(wanted.logits), len(wanted.parents), wanted.walks)
    number = first if thread == 0 else join(barrier, last)
    while number < last:
        layer, kind = (number - first) // LAYER_STEPS, (number - first) % LAYER_STEPS
        after = number - first - layers * LAYER_STEPS
        if after < 0:
            items = items_of(kind, len(given.tokens), own)
        else:
            items = _items_after(after, wanted, own)
        item = take(barrier)
        while item < items:
            if after < 0:
                compute(layer, kind, item, items, given, own)
            else:
                _find(after, item, items, given, wanted, own)
            item = take(barrier)
        if is_last_to_arrive(barrier):
            ends = wanted.walks and after > 0 and is_over(own.walk)
            ends = ends or (number + 1 < last and is_to_end(barrier))
            open_step(barrier, last if ends else number + 1)
        number = await_after(barrier, number)
    linger(thread)


@compiled_with(*_PARTS, borrows=True, forceinline=True, inner=True)
def _items_after(after: int, wanted: Wanted, own: OpenThreadState) -> int:
    """Items of a step after the layers."""
    rows = len(wanted.parents) + 1 if wanted.walks else len(wanted.logits)
    if after == 0:
        return (rows + ROWS - 1) // ROWS
    if wanted.walks and after % 2 > 0:
        return 1
    return _head_items(rows, own)


@compiled_with(*_PARTS, borrows=True, forceinline=True, inner=True)
def _head_items(rows: int, own: OpenThreadState) -> int:
    """Items of the head for so many rows."""
    rows = min(rows, own.walk.scores.shape[1])
    products = rows * own.scratch.x.shape[1] * BLOCK
    return min(cuts_of(blocks_of(own.weights.head), products, own.threads), len(own.walk.scores))


@compiled_with(*_PARTS, borrows=True, forceinline=True, inner=True)
def _find(
    after: int, item: int, items: int, given: Given, wanted: Wanted, own: OpenThreadState
) -> None:
    """Compute an item of a step after the layers."""
    weights, room, walk, rows = own.weights, own.scratch, own.walk, len(given.tokens)
    count = len(wanted.parents) + 1 if wanted.walks else len(wanted.logits)
    first = rows - count
    if after == 0:
        begin, end = first + ROWS * item, min(first + ROWS * (item + 1), rows)
        normalise(room.x, begin, end, weights.norm, own.shape.eps, room.normed)
        if wanted.walks and item == 0:
            begin_walk(walk, count)
        for row in range(begin, end):
            prepare(room.normed, row, (0, room.x.shape[1] // BLOCK), weights.head, room.records)
    elif not wanted.walks:
        cut = between(blocks_of(weights.head), items, item)
        column = cut[0] * BLOCK
        project(
            room.normed, first, count, weights.head, 0, cut, wanted.logits, column, room.records
        )
    elif after % 2 > 0:
        parts = _head_items(count, own)
        walk_on(
            walk, room.normed[first:rows], given.tokens[first:], wanted.parents, weights.head, parts
        )
    else:
        blocks = (own.vocabulary + BLOCK - 1) // BLOCK
        begin, end = between(blocks, items, item)
        look_at(walk, item, begin, end, weights.head, own.vocabulary, own.logits)


__all__ = ["forward", "forward_at", "steps_of"]
