"""The forward of a decoder built like Llama, as one compiled function: a sequence of steps whose
work items any thread may compute, see ``barrier``. A row's numbers depend neither on the other
rows, nor on the threads, nor on where the rows that it attends to are: they equal plain decoding's
to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.models.cpu.attention import Floats
from accel.models.cpu.barrier import (
    Barrier,
    await_after,
    is_end_requested,
    is_last_to_arrive,
    join,
    linger,
    open_step,
    take,
)
from accel.models.cpu.layer_matrices import blocks_of, project, quantise_row
from accel.models.cpu.layers import (
    LAYER_STEPS,
    NORM_ROWS,
    QKV_HEADS,
    compute,
    num_items,
    num_tiles,
    tile_range,
)
from accel.models.cpu.lm_head import advance, begin_verification, head_argmax, is_finished
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.request_table import (
    NUMBERS,
    VERIFIES,
    WANTED,
    ForwardInput,
    ForwardOutput,
    RequestTable,
    rows_wanted,
)
from accel.models.cpu.rms_norm import rms_norm
from accel.models.cpu.thread_state import ThreadState
from accel.native.numba_cache import compiled


@compiled(borrows=True)
def num_steps(layers: int, outputs: int, most_nodes: int) -> int:
    """Return the largest number of steps of a forward, by ``ForwardOutput``.

    A forward without outputs ends with the keys and values of the last layer. Otherwise the last
    norm follows the layers, and then the logits, beside the greedy verification of trees, whose
    steps alternate: one thread advances through the trees, then all threads compute a block of
    rows.
    """
    if most_nodes >= 0:
        return layers * LAYER_STEPS + 1 + 2 * (most_nodes + 2)
    return layers * LAYER_STEPS + 2 if outputs > 0 else (layers - 1) * LAYER_STEPS + QKV_HEADS + 1


@compiled()
def forward(
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int32],
    requests: RequestTable,
    logits: Floats,
    parents: TokenArray,
    outputs: int,
    most_nodes: int,
    steps: int,
    state: Any,
    barrier: Barrier,
    thread: int,
    first: int,
) -> None:
    """Compute a forward together with other threads. state: of ``thread_state_of``; steps:
    ``num_steps``; first: the number of the first step.

    The arguments are the fields of ``ForwardInput`` and ``ForwardOutput``: Python would take longer
    to hand over the tuples. A verification's tokens and path are in the thread's
    ``verification``. Keys and values are written after those of the committed rows.
    """
    rows, fields = ForwardInput(tokens, offsets, requests), state.fields
    output = ForwardOutput(logits, parents, outputs, most_nodes)
    share = barrier, thread, first, first + steps
    run_steps(rows, fields, rows, output, fields, share)


STEPS: dict[type, tuple[Any, Any]] = {ForwardInput: (num_items, compute)}
"""Functions that return the number of work items of a layer's step and that compute one, by the
kind of batch."""


def _by_batch(index: int) -> Any:
    def step(*_arguments: Any) -> Any:
        raise AssertionError("for compiled functions alone")

    @overload(step)
    def choose(*arguments: Any) -> Any:
        chosen = STEPS[arguments[-2].instance_class][index]

        def call(*arguments: Any) -> Any:
            return chosen(*arguments)

        return call

    return step


_count_items, _compute_item = _by_batch(0), _by_batch(1)


@compiled(borrows=True, inner=True)
def run_steps(
    batch: Any,
    state: Any,
    rows: ForwardInput,
    output: ForwardOutput,
    plain: ThreadState,
    share: tuple[Barrier, int, int, int],
) -> None:
    """Compute a forward's steps. batch, state: for those of layers, see ``STEPS``; rows, output,
    plain: for those after the layers; share: the barrier, the number of the thread, the first step
    and the one after the last. Thread 0 begins with the first step, others where they find it."""
    barrier, thread, first, last = share
    layers = len(plain.weights.attention_norm)
    number = first if thread == 0 else join(barrier, last)
    while number < last:
        layer, kind = (number - first) // LAYER_STEPS, (number - first) % LAYER_STEPS
        after = number - first - layers * LAYER_STEPS
        if after < 0:
            items = _count_items(layer, kind, batch, state)
        else:
            items = _num_output_items(after, rows, output, plain)
        item = take(barrier, thread, items)
        while item < items:
            if after < 0:
                _compute_item(layer, kind, item, items, batch, state)
            else:
                _compute_output(after, item, items, rows, output, plain)
            item = take(barrier, thread, items)
        if is_last_to_arrive(barrier):
            ends = output.most_nodes >= 0 and after > 1 and is_finished(plain.verification)
            ends = ends or (number + 1 < last and is_end_requested(barrier))
            open_step(barrier, last if ends else number + 1)
        number = await_after(barrier, number)
    linger(thread)


@compiled(borrows=True, forceinline=True, inner=True)
def _first_wanted(requests: RequestTable) -> int:
    first = requests[0, WANTED]
    for request in range(1, len(requests)):
        first = min(first, requests[request, WANTED])
    return first


@compiled(borrows=True, forceinline=True, inner=True)
def _num_output_items(
    after: int, batch: ForwardInput, output: ForwardOutput, state: ThreadState
) -> int:
    """Return the number of work items of a step after the layers."""
    if after == 0:
        rows = len(batch.tokens) - _first_wanted(batch.requests)
        return (rows + NORM_ROWS - 1) // NORM_ROWS
    if output.most_nodes >= 0 and after % 2 > 0:
        return 1
    return _num_head_tiles(output.wanted, state)


@compiled(borrows=True, forceinline=True, inner=True)
def _num_head_tiles(rows: int, state: ThreadState) -> int:
    """Return the number of tiles of the lm head for ``rows`` rows."""
    rows = min(rows, state.verification.scores.shape[1])
    products = rows * state.scratch.x.shape[1] * BLOCK
    return min(
        num_tiles(blocks_of(state.weights.head), products, state.threads),
        len(state.verification.scores),
    )


@compiled(borrows=True, forceinline=True, inner=True)
def _compute_output(
    after: int,
    item: int,
    items: int,
    batch: ForwardInput,
    output: ForwardOutput,
    state: ThreadState,
) -> None:
    """Compute one work item of a step after the layers."""
    weights, scratch, verification = state.weights, state.scratch, state.verification
    if after == 0:
        rows, first = len(batch.tokens), _first_wanted(batch.requests)
        begin, end = first + NORM_ROWS * item, min(first + NORM_ROWS * (item + 1), rows)
        rms_norm(scratch.x, begin, end, weights.norm, state.shape.eps, scratch.normed)
        if item == 0:
            begin_verification(verification, batch.requests)
        for row in range(begin, end):
            quantise_row(
                scratch.normed, row, (0, scratch.x.shape[1] // BLOCK), weights.head, scratch.q8
            )
        return
    verifies = output.most_nodes >= 0
    if verifies and after % 2 > 0:
        tiles = _num_head_tiles(output.wanted, state)
        advance(
            verification,
            scratch.normed,
            batch.tokens,
            output.parents,
            batch.requests,
            weights.head,
            tiles,
        )
        return
    if after <= 2 and len(output.logits) > 0:
        span = tile_range(blocks_of(weights.head), items, item)
        _write_logits(span, batch.requests, output.logits, state)
    if verifies:
        blocks = (state.vocabulary + BLOCK - 1) // BLOCK
        begin, end = tile_range(blocks, items, item)
        head_argmax(verification, item, begin, end, weights.head, state.vocabulary, state.logits)


@compiled(borrows=True, forceinline=True, inner=True)
def _write_logits(
    span: tuple[int, int], requests: RequestTable, logits: Floats, state: ThreadState
) -> None:
    """Some columns of the logits of all requests that ask for numbers."""
    scratch, head, column = state.scratch, state.weights.head, span[0] * BLOCK
    for request in range(len(requests)):
        first, last = rows_wanted(requests, request)
        if requests[request, VERIFIES] == 0 and first < last:
            written = logits[requests[request, NUMBERS] :]
            project(scratch.normed, first, last - first, head, 0, span, written, column, scratch.q8)
