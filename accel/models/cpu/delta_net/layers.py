"""The layers of a hybrid: their steps, as many as ``cpu.layers`` has, and the work items that
threads take. Those of attention have a gate on their output."""

from __future__ import annotations

import math

import numpy as np

from accel.models.cpu.attention import Floats
from accel.models.cpu.delta_net.kept_rows import (
    BEFORE_AT,
    HELD,
    LAST_AT,
    MADE,
    STORED_AT,
    STORED_FROM,
    HybridInput,
    StoredRows,
    kept_of,
    spare_state,
)
from accel.models.cpu.delta_net.row_plan import ABOVE, PLACE, RowPlan
from accel.models.cpu.delta_net.rule import (
    ChunkRows,
    ConvolutionInput,
    chunk_rows_of,
    convolve,
    delta_rule,
    gated_norm,
    l2_normalise,
    score_rows,
)
from accel.models.cpu.delta_net.shape import TAPS
from accel.models.cpu.delta_net.weights import HybridState
from accel.models.cpu.layer_matrices import blocks_of, project, quantise_row
from accel.models.cpu.layers import (
    ATTENTION,
    OUTPUT,
    QKV_HEADS,
    _project_and_add,
    _project_head,
    attend_to_past,
    compute,
    num_items,
    num_tiles,
    tile_range,
)
from accel.models.cpu.matmul import BLOCK, multiply, narrow
from accel.models.cpu.request_table import FIRST, ROWS
from accel.native.numba_cache import compiled
from accel.native.simd import LANES, load, store


@compiled(borrows=True, forceinline=True, inner=True)
def num_hybrid_items(layer: int, kind: int, batch: HybridInput, state: HybridState) -> int:
    """Return the number of work items of a step of a layer."""
    plain, weights, shape = state.plain, state.weights, state.shape
    if weights.kinds[layer] >= 0:
        gates = plain.shape.heads if kind == QKV_HEADS else 0
        return num_items(layer, kind, batch.rows, plain) + gates
    rows, hidden_size = len(batch.rows.tokens), plain.scratch.x.shape[1]
    if kind == QKV_HEADS:
        products = rows * hidden_size * BLOCK
        return num_tiles(blocks_of(weights.mixed), products, plain.threads) + 1
    if kind == ATTENTION:
        return len(batch.rows.requests) * shape.key_heads
    if kind == OUTPUT:
        products = rows * state.scratch.out.shape[1] * BLOCK
        return num_tiles(blocks_of(weights.out), products, plain.threads)
    return num_items(layer, kind, batch.rows, plain)


@compiled(borrows=True, forceinline=True, inner=True)
def compute_hybrid(
    layer: int, kind: int, item: int, items: int, batch: HybridInput, state: HybridState
) -> None:
    """Compute one work item of a step of a layer."""
    plain, number = state.plain, state.weights.kinds[layer]
    rows = len(batch.rows.tokens)
    if kind == QKV_HEADS and number >= 0:
        projected = plain.shape.heads + 2 * plain.shape.kv_heads
        if item < projected:
            _project_head(number, item, batch.rows, plain)
        else:
            _project_output_gate(number, item - projected, rows, state)
    elif kind == QKV_HEADS:
        _mix(-1 - number, item, items, rows, state)
    elif kind == ATTENTION and number >= 0:
        attend_to_past(number, item, items, batch.rows, plain, state.scratch.output_gate)
    elif kind == ATTENTION:
        request, head = item // state.shape.key_heads, item % state.shape.key_heads
        _delta_head(-1 - number, request, head, batch, state)
    elif kind == OUTPUT and number >= 0:
        inputs, matrices, q8 = plain.scratch.attended, plain.weights.output, plain.scratch.q8
        _project_and_add(number, item, items, rows, inputs, matrices, q8, plain)
    elif kind == OUTPUT:
        inputs, matrices, q8 = state.scratch.out, state.weights.out, state.scratch.out_q8
        _project_and_add(-1 - number, item, items, rows, inputs, matrices, q8, plain)
    else:
        compute(layer, kind, item, items, batch.rows, plain)


@compiled(borrows=True, forceinline=True, inner=True)
def _project_output_gate(number: int, head: int, rows: int, state: HybridState) -> None:
    scratch, head_dim = state.plain.scratch, state.plain.shape.head_dim
    blocks = head_dim // BLOCK
    span = head * blocks, (head + 1) * blocks
    gate, matrices = state.scratch.output_gate, state.weights.output_gate
    project(scratch.normed, 0, rows, matrices, number, span, gate, head * head_dim, scratch.q8)


@compiled(borrows=True, forceinline=True, inner=True)
def _mix(number: int, item: int, items: int, rows: int, state: HybridState) -> None:
    """Project queries, keys, values and z; or, as the last item, betas and gates."""
    scratch, weights = state.plain.scratch, state.weights
    if item == items - 1:
        matrix, inputs = weights.betas_gates[number], scratch.normed
        vectors, hidden_size = state.scratch.betas_gates, inputs.shape[1]
        multiply(inputs, 0, rows, matrix, len(matrix), hidden_size, vectors, 0)
        return
    span = tile_range(blocks_of(weights.mixed), items - 1, item)
    vectors, column = state.scratch.mixed, span[0] * BLOCK
    project(scratch.normed, 0, rows, weights.mixed, number, span, vectors, column, scratch.q8)


@compiled(borrows=True, forceinline=True, inner=True)
def _delta_head(
    number: int, request: int, head: int, batch: HybridInput, state: HybridState
) -> None:
    """A head of keys of a request's rows, with the heads of values that it serves."""
    shape, weights, scratch, buffers = state.shape, state.weights, state.scratch, state.buffers
    requests, plan, stored = batch.rows.requests, batch.plan, batch.stored
    line = requests[request]
    first, rows, held, chunks = line[FIRST], line[ROWS], line[HELD], line[MADE]
    rows_kept = kept_of(requests, request, state.kept)
    key_size, key_dim, value_dim = shape.key_heads * shape.key_dim, shape.key_dim, shape.value_dim
    past, kernel = rows_kept.inputs[number, held : held + TAPS], weights.kernel[number]
    mixed, vectors, key_at = scratch.mixed, buffers.keys_queries, head * key_dim
    own = ConvolutionInput(mixed, first, rows, past, plan, kernel, buffers.inputs)
    for column, start in ((key_size + key_at, 0), (key_at, key_dim)):
        convolve(own, column, vectors, key_dim, 2 * key_dim, start)
    scale = np.float32(1) / np.sqrt(np.float32(key_dim))
    for row in range(rows):
        l2_normalise(vectors, 2 * row * key_dim, key_dim, np.float32(1))
        l2_normalise(vectors, (2 * row + 1) * key_dim, key_dim, scale)
    window = chunk_rows_of(rows_kept, number, held, 0, key_at, 0)
    score_rows(first, rows, plan, window, buffers)
    stored_from, stored_at = line[STORED_FROM], line[STORED_AT]
    for repeat in range(shape.value_heads // shape.key_heads):
        value_head = head * shape.head_stride + repeat * shape.repeat_stride
        value_at = value_head * value_dim
        column = 2 * key_size + value_at
        convolve(own, column, buffers.updates, value_dim, value_dim, 0)
        window = chunk_rows_of(rows_kept, number, held, value_head, key_at, value_at)
        _gates(number, first, rows, plan, window, state)
        before, origins = rows_kept.state[number, value_head], batch.origins[first:]
        delta_rule(first, rows, plan, origins, chunks, before, window, buffers)
        for row in range(rows):
            to = scratch.out.shape[1] * (first + row) + value_at
            gate_at = mixed.shape[1] * (first + row) + kernel.shape[1] + value_at
            norm, eps, output_at = weights.norm[number], shape.eps, row * value_dim
            gated_norm(buffers.outputs, output_at, mixed, gate_at, norm, eps, scratch.out, to)
            span = value_at // BLOCK, (value_at + value_dim) // BLOCK
            quantise_row(scratch.out, first + row, span, weights.out, scratch.out_q8)
        for row in range(stored_from, rows):
            to = stored_at + row - stored_from
            stored.totals[number, to, value_head] = buffers.totals[row]
            for i in range(value_dim):
                stored.updates[number, to, value_at + i] = buffers.updates[row, i]
            _store_inputs(number, to, first + row, column, value_dim, mixed, stored)
        for back, address_column in ((1, LAST_AT), (2, BEFORE_AT)):
            if line[address_column] != 0:
                spare = spare_state(requests, request, address_column, state.kept)
                _copy(buffers.states[chunks - back], spare[number, value_head])
    for row in range(stored_from, rows):
        to = stored_at + row - stored_from
        for i in range(key_dim):
            stored.keys[number, to, key_at + i] = vectors[2 * row, i]
        _store_inputs(number, to, first + row, key_at, key_dim, mixed, stored)
        _store_inputs(number, to, first + row, key_size + key_at, key_dim, mixed, stored)


@compiled(borrows=True, inner=True)
def _store_inputs(
    number: int, to: int, row: int, column: int, width: int, mixed: Floats, stored: StoredRows
) -> None:
    for i in range(column, column + width):
        stored.inputs[number, to, i] = narrow(mixed[row, i], stored.inputs)


@compiled(borrows=True)
def _copy(source: Floats, target: Floats) -> None:
    for index in range(0, source.size, LANES):
        store(target, index, load(source, index))


@compiled(borrows=True, inner=True)
def _gates(
    number: int, first: int, rows: int, plan: RowPlan, window: ChunkRows, state: HybridState
) -> None:
    """Write a head's betas, and the sums of its gates since its chunk began."""
    weights, buffers, vectors = state.weights, state.buffers, state.scratch.betas_gates
    half, value_head = vectors.shape[1] // 2, window.head
    rate, bias = weights.rate[number, value_head], weights.bias[number, value_head]
    for row in range(rows):
        line = plan[first + row]
        beta = vectors[first + row, value_head]
        buffers.betas[row] = np.float32(1 / (1 + math.exp(-beta)))
        step = vectors[first + row, half + value_head] + bias
        step = step if step > 20 else math.log1p(math.exp(step))
        total, position = np.float32(0), line[PLACE]
        if position > 0:
            before = line[ABOVE + position - 1]
            is_held = before < window.held
            total = (
                window.totals[value_head, before]
                if is_held
                else buffers.totals[before - window.held]
            )
        buffers.totals[row] = total + np.float32(rate * step)
