"""The forward of a hybrid, as one compiled function: see ``cpu.forward``, whose last steps it
shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.models.cpu.attention import Floats, Stored
from accel.models.cpu.barrier import Barrier
from accel.models.cpu.delta_net.kept_rows import HybridInput, KeptRows, StoredRows
from accel.models.cpu.delta_net.layers import compute_hybrid, num_hybrid_items
from accel.models.cpu.delta_net.row_plan import RowPlan
from accel.models.cpu.delta_net.rule import chunk_rows_of, make_state
from accel.models.cpu.delta_net.shape import CHUNK, DeltaBuffers, DeltaShape
from accel.models.cpu.forward import STEPS, num_steps, run_steps
from accel.models.cpu.layers import ATTENTION, LAYER_STEPS
from accel.models.cpu.request_table import ForwardInput, ForwardOutput, RequestTable
from accel.native.numba_cache import compiled


def num_hybrid_steps(kinds: NDArray[np.int64], outputs: int, most_nodes: int) -> int:
    """``num_steps``; a forward without outputs goes on to the states of a last layer that has
    such."""
    if most_nodes < 0 and outputs <= 0 and kinds[-1] < 0:
        return (len(kinds) - 1) * LAYER_STEPS + ATTENTION + 1
    return num_steps(len(kinds), outputs, most_nodes)


STEPS[HybridInput] = num_hybrid_items, compute_hybrid


@compiled()
def hybrid_forward(
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int32],
    requests: RequestTable,
    logits: Floats,
    parents: TokenArray,
    outputs: int,
    most_nodes: int,
    plan: RowPlan,
    origins: TokenArray,
    inputs: Stored,
    keys: Floats,
    updates: Floats,
    totals: Floats,
    steps: int,
    state: Any,
    barrier: Barrier,
    thread: int,
    first: int,
) -> None:
    """Compute a forward together with other threads, see ``cpu.forward.forward``.

    plan, origins: of ``HybridInput``; then the fields of ``StoredRows``; state: of
    ``hybrid_state_of``; steps: ``num_hybrid_steps``.
    """
    rows = ForwardInput(tokens, offsets, requests)
    batch = HybridInput(rows, plan, origins, StoredRows(inputs, keys, updates, totals))
    output, fields = ForwardOutput(logits, parents, outputs, most_nodes), state.fields
    share = barrier, thread, first, first + steps
    run_steps(batch, fields, rows, output, fields.plain, share)


@compiled()
def close_chunk(rows: KeptRows, shape: DeltaShape, buffers: DeltaBuffers, after: Floats) -> None:
    """Write the state after a whole chunk of kept rows."""
    for row in range(CHUNK):
        buffers.path[row] = row
    share = shape.value_heads // shape.key_heads
    for layer in range(len(after)):
        for key_head in range(shape.key_heads):
            for repeat in range(share):
                head = key_head * shape.head_stride + repeat * shape.repeat_stride
                key_at, update_at = key_head * shape.key_dim, head * shape.value_dim
                window = chunk_rows_of(rows, layer, CHUNK, head, key_at, update_at)
                make_state(rows.state[layer, head], window, buffers, after[layer, head])
