"""The layers of the compiled forward: their steps, and the work items that threads take. Who
computed columns also does what follows for them alone (the epilogue)."""

from __future__ import annotations

import numpy as np

from accel.models.cpu.attention import QUERIES, Floats, apply_rope, attend, store_key, store_value
from accel.models.cpu.kv_quantisation import absmax_quantise
from accel.models.cpu.layer_matrices import (
    Matrices,
    blocks_of,
    embed,
    hand_over,
    project,
    quantise_row,
)
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.quantised.activations import Q8Blocks
from accel.models.cpu.request_table import (
    FIRST,
    PAST,
    ROWS,
    ForwardInput,
    RequestTable,
    kv_of,
    mask_of,
)
from accel.models.cpu.rms_norm import add_residual, rms_norm, rms_norm_head
from accel.models.cpu.scratch import blocks_at_once
from accel.models.cpu.thread_state import ThreadState
from accel.native.numba_cache import compiled
from accel.native.simd import LANES, exp, load, minimum, splat, store

LAYER_STEPS = 7
ATTENTION_NORM, QKV_HEADS, ATTENTION, OUTPUT, MLP_NORM, SWIGLU, DOWN = range(LAYER_STEPS)

# Measure with `python -m tests.benchmarks forward --model FILE`.
NORM_ROWS = 4
"""Rows of a norm in one work item."""

_SHARE = 4
"""Tiles of a matrix for each thread, at least, so that a late thread leaves work to the others."""

_MOST_PRODUCTS = 1 << 21
"""Multiplications in a tile, about: ten microseconds, which a thread waits for another at most."""


@compiled(borrows=True)
def num_tiles(blocks: int, products: int, threads: int) -> int:
    """Return the number of tiles that ``blocks`` blocks of columns are cut into. products:
    multiplications of a block."""
    of_thread = max(_SHARE, blocks * products // (_MOST_PRODUCTS * threads))
    return min(blocks, of_thread * threads)


@compiled(borrows=True)
def tile_range(blocks: int, tiles: int, tile: int) -> tuple[int, int]:
    """Return the first block of a tile, and the one after its last."""
    return blocks * tile // tiles, blocks * (tile + 1) // tiles


@compiled(borrows=True)
def num_query_tiles(queries: int, kv_heads: int, threads: int) -> int:
    """Return the number of tiles that the queries of one KV head are cut into; all of them read the
    same keys."""
    least = 1 if kv_heads % threads == 0 else min(queries, threads)
    return max(least, (queries + QUERIES - 1) // QUERIES)


@compiled(borrows=True, forceinline=True, inner=True)
def _num_query_tiles_of(requests: RequestTable, request: int, state: ThreadState) -> int:
    shape = state.shape
    queries = requests[request, ROWS] * (shape.heads // shape.kv_heads)
    return num_query_tiles(queries, shape.kv_heads, state.threads)


@compiled(borrows=True, forceinline=True, inner=True)
def num_items(_layer: int, kind: int, batch: ForwardInput, state: ThreadState) -> int:
    """Return the number of work items of a step of a layer."""
    shape, weights, threads = state.shape, state.weights, state.threads
    rows = len(batch.tokens)
    if kind == QKV_HEADS:
        return shape.heads + 2 * shape.kv_heads
    if kind == ATTENTION:
        tiles = 0
        for request in range(len(batch.requests)):
            tiles += _num_query_tiles_of(batch.requests, request, state)
        return shape.kv_heads * tiles
    if kind == OUTPUT:
        in_features = state.scratch.attended.shape[1]
        return num_tiles(blocks_of(weights.output), rows * in_features * BLOCK, threads)
    if kind == SWIGLU:
        in_features = state.scratch.x.shape[1]
        return num_tiles(blocks_of(weights.gate_up) // 2, 2 * rows * in_features * BLOCK, threads)
    if kind == DOWN:
        in_features = state.scratch.gated.shape[1]
        return num_tiles(blocks_of(weights.down), rows * in_features * BLOCK, threads)
    return (rows + NORM_ROWS - 1) // NORM_ROWS


@compiled(borrows=True, forceinline=True, inner=True)
def compute(
    layer: int, kind: int, item: int, items: int, batch: ForwardInput, state: ThreadState
) -> None:
    """Compute one work item of a step of a layer."""
    scratch, weights = state.scratch, state.weights
    if kind == ATTENTION_NORM:
        _attention_norm(layer, item, batch, state)
    elif kind == QKV_HEADS:
        _project_head(layer, item, batch, state)
    elif kind == ATTENTION:
        attend_to_past(layer, item, items, batch, state, state.scratch.attended[:0])
    elif kind == OUTPUT:
        inputs, matrices, q8 = scratch.attended, weights.output, scratch.q8
        _project_and_add(layer, item, items, len(batch.tokens), inputs, matrices, q8, state)
    elif kind == MLP_NORM:
        first, last = NORM_ROWS * item, min(NORM_ROWS * (item + 1), len(batch.tokens))
        weight = state.weights.mlp_norm[layer]
        rms_norm(state.scratch.x, first, last, weight, state.shape.eps, state.scratch.normed)
        _quantise_rows(state.scratch.normed, first, last, state.weights.gate_up, state.scratch.q8)
    elif kind == SWIGLU:
        _swiglu(layer, item, items, len(batch.tokens), state)
    else:
        inputs, matrices, q8 = scratch.gated, weights.down, scratch.gated_q8
        _project_and_add(layer, item, items, len(batch.tokens), inputs, matrices, q8, state)


@compiled(borrows=True)
def _quantise_rows(inputs: Floats, first: int, last: int, matrices: Matrices, q8: Q8Blocks) -> None:
    for row in range(first, last):
        quantise_row(inputs, row, (0, inputs.shape[1] // BLOCK), matrices, q8)


@compiled(borrows=True, forceinline=True, inner=True)
def _attention_norm(layer: int, item: int, batch: ForwardInput, state: ThreadState) -> None:
    scratch, weights = state.scratch, state.weights
    first, last = NORM_ROWS * item, min(NORM_ROWS * (item + 1), len(batch.tokens))
    if layer == 0:
        embed(batch.tokens[first:last], weights.embedding, scratch.x[first:last])
    rms_norm(scratch.x, first, last, weights.attention_norm[layer], state.shape.eps, scratch.normed)
    _quantise_rows(scratch.normed, first, last, weights.qkv, scratch.q8)


@compiled(borrows=True, forceinline=True, inner=True)
def _project_head(layer: int, head: int, batch: ForwardInput, state: ThreadState) -> None:
    """Project one head of queries, keys or values, and finish it."""
    scratch, rows, blocks = state.scratch, len(batch.tokens), state.shape.head_dim // BLOCK
    span, products = (head * blocks, (head + 1) * blocks), state.tile_buffers.products
    project(scratch.normed, 0, rows, state.weights.qkv, layer, span, products, 0, scratch.q8)
    for request in range(len(batch.requests)):
        _finish_head(layer, head, request, batch, state)


@compiled(borrows=True, inner=True)
def _finish_head(
    layer: int, head: int, request: int, batch: ForwardInput, state: ThreadState
) -> None:
    """Finish one head of a request's projected rows: add its bias, for queries and keys apply the
    head's norm and RoPE, and write queries as ``attend`` reads them, keys and values with their
    scales to the request's cache. Query heads come first, then key heads, then value heads."""
    shape, weights, projected = state.shape, state.weights, state.tile_buffers.products
    heads, kv_heads, head_dim = shape.heads, shape.kv_heads, shape.head_dim
    line, offsets, cos_sin = batch.requests[request], batch.offsets, state.cos_sin
    bias = weights.qkv_bias[layer][head * head_dim : (head + 1) * head_dim]
    # Queries are written elsewhere, and read no keys.
    of_keys = head < heads + kv_heads
    own_head = max(head - heads - (0 if of_keys else kv_heads), 0)
    kv = kv_of(batch.requests, request, state.kv)
    cache, cache_scales = (kv.keys, kv.key_scales) if of_keys else (kv.values, kv.value_scales)
    keys, scales = cache[layer, own_head], cache_scales[layer, own_head]
    group, stride, past = heads // kv_heads, projected.shape[1], line[PAST]
    for row in range(line[FIRST], line[FIRST] + line[ROWS]):
        position, start = past + offsets[row], row * stride
        if len(bias) > 0:
            for i in range(head_dim):
                projected[row, i] += bias[i]
        if head < heads:
            rms_norm_head(projected, start, weights.query_norm[layer], shape.eps)
            to = (head // group * len(offsets) + row) * group + head % group
            apply_rope(projected, start, cos_sin, position, state.scratch.queries, to * head_dim)
            continue
        if of_keys:
            rms_norm_head(projected, start, weights.key_norm[layer], shape.eps)
            apply_rope(projected, start, cos_sin, position, projected, start)
        slot, vector = past + row - line[FIRST], projected[row, :head_dim]
        if len(scales) > 0:
            scales[slot] = absmax_quantise(projected, start, head_dim)
        if of_keys:
            store_key(keys, slot, vector)
        else:
            store_value(keys, slot, vector)


@compiled(borrows=True, forceinline=True, inner=True)
def attend_to_past(
    layer: int, item: int, items: int, batch: ForwardInput, state: ThreadState, gate: Floats
) -> None:
    """By some queries of a request, of a head of keys. gate: float32 [rows, heads * head_dim],
    whose sigmoid the output is multiplied by, or no rows."""
    scratch, shape, requests = state.scratch, state.shape, batch.requests
    group = shape.heads // shape.kv_heads
    tiles_per_head = items // shape.kv_heads
    head, tile = item // tiles_per_head, item % tiles_per_head
    request, tiles = 0, _num_query_tiles_of(requests, 0, state)
    while tile >= tiles:
        tile -= tiles
        request += 1
        tiles = _num_query_tiles_of(requests, request, state)
    first_row = requests[request, FIRST]
    first, last = tile_range(requests[request, ROWS] * group, tiles, tile)
    attend(
        scratch.queries,
        kv_of(requests, request, state.kv),
        layer,
        mask_of(requests, request, state.logits),
        batch.offsets,
        requests[request, PAST],
        shape,
        head,
        first_row,
        first,
        last,
        state.attention_buffers,
        scratch.attended,
    )
    blocks = shape.head_dim // BLOCK
    for query in range(first, last):
        block, row = (head * group + query % group) * blocks, first_row + query // group
        if len(gate):
            start = row * gate.shape[1] + block * BLOCK
            sigmoid_and_mul(gate, scratch.attended, start, start + shape.head_dim)
        span = block, block + blocks
        quantise_row(scratch.attended, row, span, state.weights.output, scratch.q8)


@compiled(borrows=True, forceinline=True, inner=True)
def _project_and_add(
    layer: int,
    item: int,
    items: int,
    rows: int,
    inputs: Floats,
    matrices: Matrices,
    q8: Q8Blocks,
    state: ThreadState,
) -> None:
    """Add a projection to the residual stream: the attention output, or the down projection."""
    products, at_once = state.tile_buffers.products, blocks_at_once(rows)
    begin, end = tile_range(blocks_of(matrices), items, item)
    for first in range(begin, end, at_once):
        last = min(first + at_once, end)
        project(inputs, 0, rows, matrices, layer, (first, last), products, 0, q8)
        add_residual(state.scratch.x, products, rows, first * BLOCK, last * BLOCK)


@compiled(borrows=True, forceinline=True, inner=True)
def _swiglu(layer: int, item: int, items: int, rows: int, state: ThreadState) -> None:
    scratch, gate_up = state.scratch, state.weights.gate_up
    (products, gated), at_once = state.tile_buffers, blocks_at_once(rows)
    blocks, inputs, q8 = blocks_of(gate_up) // 2, scratch.gated, scratch.gated_q8
    begin, end = tile_range(blocks, items, item)
    for first in range(begin, end, at_once):
        last = min(first + at_once, end)
        for before, to in ((0, 0), (blocks, gated.shape[1])):
            span = before + first, before + last
            project(scratch.normed, 0, rows, gate_up, layer, span, products, to, scratch.q8)
        silu_and_mul(products, gated, rows, 0, (last - first) * BLOCK)
        for row in range(rows):
            hand_over(gated, row, (first, last), state.weights.down, inputs, q8)


@compiled(borrows=True)
def silu_and_mul(gate_up: Floats, gated: Floats, rows: int, first: int, last: int) -> None:
    """Write silu(gate) * up for the columns from ``first`` to before ``last``.

    gate_up: [rows, >= 2 * intermediate_size], the gate before the up projection; gated: [rows,
    intermediate_size]."""
    intermediate_size = gated.shape[1]
    unity, zero = splat(np.float32(1)), splat(np.float32(0))
    most = splat(np.float32(87))
    for row in range(rows):
        start = row * gate_up.shape[1]
        for i in range(first, last, LANES):
            gate, up = load(gate_up, start + i), load(gate_up, start + intermediate_size + i)
            silu = gate / (unity + exp(minimum(zero - gate, most)))
            store(gated, row * intermediate_size + i, silu * up)


@compiled(borrows=True)
def sigmoid_and_mul(gate: Floats, x: Floats, first: int, last: int) -> None:
    """Multiply numbers of x, by flat index, by the sigmoids of those of the gate at the same
    places."""
    unity, zero, most = splat(np.float32(1)), splat(np.float32(0)), splat(np.float32(87))
    for i in range(first, last, LANES):
        sigmoid = unity / (unity + exp(minimum(zero - load(gate, i), most)))
        store(x, i, load(x, i) * sigmoid)
