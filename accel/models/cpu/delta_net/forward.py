"""The forward of a hybrid, as one compiled function: see ``cpu.forward``, whose last steps it
shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.models.cpu import forward as plain_forward
from accel.models.cpu.attention import Floats, Stored
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
from accel.models.cpu.delta_net import kept_rows
from accel.models.cpu.delta_net import layers as hybrid_layers
from accel.models.cpu.delta_net import thread_state as hybrid_state
from accel.models.cpu.delta_net.kept_rows import KeptRows, StoredRows
from accel.models.cpu.delta_net.layers import compute_hybrid, num_hybrid_items
from accel.models.cpu.delta_net.row_plan import RowPlan
from accel.models.cpu.delta_net.rule import ChunkRows, make_state
from accel.models.cpu.delta_net.shape import CHUNK, DeltaBuffers, DeltaShape
from accel.models.cpu.delta_net.thread_state import OpenHybridState, opened_hybrid
from accel.models.cpu.forward import _compute_output, _num_output_items, num_steps
from accel.models.cpu.forward_arguments import ForwardInput, ForwardOutput
from accel.models.cpu.layers import ATTENTION, LAYER_STEPS
from accel.models.cpu.lm_head import is_finished
from accel.models.cpu.request_table import RequestTable
from accel.native.numba_cache import compiled_with

_PARTS = plain_forward, hybrid_layers, hybrid_state, kept_rows


def num_hybrid_steps(kinds: NDArray[np.int64], outputs: int, most_nodes: int) -> int:
    """``num_steps``; a forward without outputs goes on to the states of a last layer that has
    such."""
    if most_nodes < 0 and outputs <= 0 and kinds[-1] < 0:
        return (len(kinds) - 1) * LAYER_STEPS + ATTENTION + 1
    return num_steps(len(kinds), outputs, most_nodes)


@compiled_with(*_PARTS)
def hybrid_forward(
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int32],
    requests: RequestTable,
    logits: Floats,
    parents: TokenArray,
    outputs: int,
    most_nodes: int,
    steps: int,
    plan: RowPlan,
    origins: TokenArray,
    inputs: Stored,
    keys: Floats,
    updates: Floats,
    totals: Floats,
    state: Any,
    barrier: Barrier,
    thread: int,
    first: int,
) -> None:
    """Compute a forward together with other threads, see ``cpu.forward.forward``.

    steps: ``num_hybrid_steps``; plan: of all rows; origins: int32 [rows], a request's from its
    first row on; then the fields of ``StoredRows``.
    """
    _hybrid_forward_at(
        ForwardInput(tokens, offsets, requests),
        ForwardOutput(logits, parents, outputs, most_nodes),
        steps,
        plan,
        origins,
        StoredRows(inputs, keys, updates, totals),
        opened_hybrid(state),
        barrier,
        thread,
        first,
    )


@compiled_with(*_PARTS, borrows=True, inner=True)
def _hybrid_forward_at(
    batch: ForwardInput,
    output: ForwardOutput,
    steps: int,
    plan: RowPlan,
    origins: TokenArray,
    stored: StoredRows,
    state: OpenHybridState,
    barrier: Barrier,
    thread: int,
    first: int,
) -> None:
    plain, layers = state.plain, len(state.weights.kinds)
    last = first + steps
    number = first if thread == 0 else join(barrier, last)
    while number < last:
        layer, kind = (number - first) // LAYER_STEPS, (number - first) % LAYER_STEPS
        after = number - first - layers * LAYER_STEPS
        if after < 0:
            items = num_hybrid_items(layer, kind, batch, state)
        else:
            items = _num_output_items(after, batch, output, plain)
        item = take(barrier, thread, items)
        while item < items:
            if after < 0:
                compute_hybrid(layer, kind, item, items, batch, plan, origins, stored, state)
            else:
                _compute_output(after, item, items, batch, output, plain)
            item = take(barrier, thread, items)
        if is_last_to_arrive(barrier):
            ends = output.most_nodes >= 0 and after > 1 and is_finished(plain.verification)
            ends = ends or (number + 1 < last and is_end_requested(barrier))
            open_step(barrier, last if ends else number + 1)
        number = await_after(barrier, number)
    linger(thread)


@compiled_with(*_PARTS)
def close_chunk(rows: KeptRows, shape: DeltaShape, buffers: DeltaBuffers, after: Floats) -> None:
    """Write the state after a whole chunk of kept rows."""
    for row in range(CHUNK):
        buffers.path[row] = row
    share = shape.value_heads // shape.key_heads
    for layer in range(len(after)):
        window = ChunkRows(rows.keys[layer], rows.updates[layer], rows.totals[layer], CHUNK)
        for key_head in range(shape.key_heads):
            for repeat in range(share):
                head = key_head * shape.head_stride + repeat * shape.repeat_stride
                key_at, update_at = key_head * shape.key_dim, head * shape.value_dim
                before = rows.state[layer, head]
                make_state(before, window, head, key_at, update_at, buffers, after[layer, head])
