"""The gated delta rule of a head, row by row (Yang et al. 2024, sections 3.1 and 3.3).

A row's numbers come from the state that its chunk begins with, and from the rows before it in the
chunk: the rows of the triangular system of the chunkwise form. So they do not depend on which rows
are computed with it, and in a tree every row has its own path; nothing is copied. With G, the sum
of the gates since the chunk began, and S, that state::

    u_i = beta_i (v_i - exp(G_i) S k_i - sum over j < i of exp(G_i - G_j) (k_i . k_j) u_j)
    o_i =               exp(G_i) S q_i + sum over j <= i of exp(G_i - G_j) (q_i . k_j) u_j

The state after a chunk is exp(G) S + the sum of exp(G - G_j) k_j u_j over its rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from accel.draft_tree import TokenArray
from accel.models.cpu.attention import Floats, Stored
from accel.models.cpu.delta_net.kept_rows import KeptRows
from accel.models.cpu.delta_net.row_plan import ABOVE, PLACE, STATE, RowPlan
from accel.models.cpu.delta_net.shape import CHUNK, RUN, TAPS, DeltaBuffers
from accel.models.cpu.matmul import BLOCK, multiply, narrow, wide
from accel.native.numba_cache import compiled
from accel.native.simd import (
    LANES,
    exp,
    load,
    minimum,
    multiply_add,
    reduce_add,
    select_greater,
    splat,
    store,
)

LEAST = np.float32(2.0**-60)
"""Smaller decays count as zero: products with them might be denormal, which takes some processors a
hundred times as long."""

_L2_EPS = np.float32(1e-6)


class ChunkRows(NamedTuple):
    """The committed rows of the chunk that is under way, in a layer, and a head of values.

    keys: [CHUNK, key_size]; updates: [CHUNK, value_size]; totals: [value_heads, CHUNK]; held: how
    many there are; head: its number; key_at, update_at: where it begins in a row of keys and of
    updates.
    """

    keys: Floats
    updates: Floats
    totals: Floats
    held: int
    head: int
    key_at: int
    update_at: int


class ConvolutionInput(NamedTuple):
    """Inputs of the convolution of a request's ``rows`` rows, from ``first`` on of all in mixed:
    [all rows, >= channels]. past: the three rows before them, [3, channels], of the dtype that
    inputs are rounded to; kernel: [4, channels]; inputs: a buffer, [3 + rows, ..]."""

    mixed: Floats
    first: int
    rows: int
    past: Stored
    plan: RowPlan
    kernel: Floats
    inputs: Floats


@njit(nogil=True, inline="always")
def chunk_rows_of(
    rows: KeptRows, layer: int, held: int, head: int, key_at: int, update_at: int
) -> ChunkRows:
    """Return the rows of a layer for a head, see ``ChunkRows``."""
    keys, updates, totals = rows.keys[layer], rows.updates[layer], rows.totals[layer]
    return ChunkRows(keys, updates, totals, held, head, key_at, update_at)


@compiled(borrows=True)
def decay(gate: float) -> float:
    """exp of a sum of gates, zero where that is next to nothing."""
    factor = np.float32(math.exp(gate))
    return factor if factor > LEAST else np.float32(0)


@compiled(borrows=True)
def convolve(
    own: ConvolutionInput, column: int, convolved: Floats, width: int, step: int, start: int
) -> None:
    """Write silu of the causal convolution of some channels, from ``column`` on, ``width`` of them:
    of row i from flat index i * ``step`` + ``start`` of ``convolved`` on."""
    mixed, first, rows, past, plan, kernel, inputs = own
    stride = inputs.shape[1]
    for row in range(TAPS):
        for i in range(width):
            inputs[row, i] = wide(past[row, column + i])
    for row in range(rows):
        for i in range(width):
            inputs[TAPS + row, i] = wide(narrow(mixed[first + row, column + i], past))
    channels, unity, zero = kernel.shape[1], splat(np.float32(1)), splat(np.float32(0))
    most = splat(np.float32(87))
    for row in range(rows):
        line, here = plan[first + row], (TAPS + row) * stride
        near, mid, far = (
            (TAPS + line[0]) * stride,
            (TAPS + line[1]) * stride,
            (TAPS + line[2]) * stride,
        )
        for i in range(0, width, LANES):
            channel = column + i
            total = load(inputs, far + i) * load(kernel, channel)
            total = multiply_add(load(inputs, mid + i), load(kernel, channels + channel), total)
            total = multiply_add(
                load(inputs, near + i), load(kernel, 2 * channels + channel), total
            )
            total = multiply_add(
                load(inputs, here + i), load(kernel, 3 * channels + channel), total
            )
            silu = total / (unity + exp(minimum(zero - total, most)))
            store(convolved, row * step + start + i, silu)


@compiled(borrows=True)
def l2_normalise(vectors: Floats, start: int, size: int, factor: float) -> None:
    """Divide a vector by its length, and multiply it by a factor."""
    total = splat(np.float32(0))
    for i in range(0, size, LANES):
        value = load(vectors, start + i)
        total = multiply_add(value, value, total)
    scale = splat(np.float32(np.float32(factor) / np.sqrt(reduce_add(total) + _L2_EPS)))
    for i in range(0, size, LANES):
        store(vectors, start + i, load(vectors, start + i) * scale)


@compiled(borrows=True)
def score_rows(
    first: int, rows: int, plan: RowPlan, window: ChunkRows, buffers: DeltaBuffers
) -> None:
    """Write the products of each row's key and query with the keys before it in its chunk, and with
    its own."""
    vectors = buffers.keys_queries
    size, key_size = vectors.shape[1], window.keys.shape[1]
    for row in range(rows):
        line, key = plan[first + row], 2 * row * size
        query = key + size
        for position in range(line[PLACE] + 1):
            before = line[ABOVE + position] if position < line[PLACE] else window.held + row
            of_keys, of_queries = splat(np.float32(0)), splat(np.float32(0))
            is_held = before < window.held
            keys = window.keys if is_held else vectors
            start = before * key_size + window.key_at
            if not is_held:
                start = 2 * (before - window.held) * size
            for i in range(0, size, LANES):
                value = load(keys, start + i)
                of_keys = multiply_add(load(vectors, key + i), value, of_keys)
                of_queries = multiply_add(load(vectors, query + i), value, of_queries)
            buffers.key_scores[row, position] = reduce_add(of_keys)
            buffers.query_scores[row, position] = reduce_add(of_queries)


@compiled(borrows=True)
def make_state(before: Floats, window: ChunkRows, buffers: DeltaBuffers, after: Floats) -> None:
    """Write the state after the chunk of the rows in ``buffers.path``: committed ones first, then
    those of the request. before, after: [value_dim / 32, key_dim, 32]."""
    vectors, path, totals = buffers.keys_queries, buffers.path, buffers.totals
    size, width, held = vectors.shape[1], buffers.updates.shape[1], window.held
    head, key_at, update_at = window.head, window.key_at, window.update_at
    last = path[CHUNK - 1]
    total = window.totals[head, last] if last < held else totals[last - held]
    for position in range(CHUNK):
        row = path[position]
        if row < held:
            weight = decay(total - window.totals[head, row])
            for i in range(size):
                buffers.chunk_keys[i, position] = window.keys[row, key_at + i] * weight
            for i in range(width):
                value = window.updates[row, update_at + i]
                buffers.chunk_updates[i // BLOCK, position, i % BLOCK] = value
        else:
            row -= held
            weight = decay(total - totals[row])
            for i in range(size):
                buffers.chunk_keys[i, position] = vectors[2 * row, i] * weight
            for i in range(width):
                value = buffers.updates[row, i]
                buffers.chunk_updates[i // BLOCK, position, i % BLOCK] = value
    blocks, added = width // BLOCK, buffers.added
    multiply(buffers.chunk_keys, 0, size, buffers.chunk_updates, blocks, CHUNK, added, 0)
    decayed, zero, least = splat(decay(total)), splat(np.float32(0)), splat(LEAST)
    for block in range(blocks):
        for i in range(size):
            for column in range(0, BLOCK, LANES):
                start = (block * size + i) * BLOCK + column
                value = load(added, i * width + block * BLOCK + column)
                value = multiply_add(load(before, start), decayed, value)
                large = select_greater(value, least, value)
                store(after, start, large + select_greater(zero - value, least, value))


@compiled(borrows=True)
def _update_row(
    line: RowPlan, row: int, product: int, window: ChunkRows, buffers: DeltaBuffers
) -> None:
    """Write a row's update in place of its value, and its output. product: the row of the state's
    products with its key, before that with its query."""
    totals, weights, updates = buffers.totals, buffers.weights, buffers.updates
    position, width, held = line[PLACE], updates.shape[1], window.held
    total, value_size = totals[row], window.updates.shape[1]
    head, update_at = window.head, window.update_at
    for above in range(position):
        before = line[ABOVE + above]
        other = window.totals[head, before] if before < held else totals[before - held]
        weights[0, above] = total - other
    least, scores = splat(LEAST), row * CHUNK
    for above in range(0, position, LANES):
        decayed = exp(load(weights, above))
        decayed = select_greater(decayed, least, decayed)
        store(weights, CHUNK + above, decayed * load(buffers.key_scores, scores + above))
        store(weights, 2 * CHUNK + above, decayed * load(buffers.query_scores, scores + above))
    decayed, beta = splat(decay(total)), splat(buffers.betas[row])
    own = splat(buffers.query_scores[row, position])
    for column in range(0, width, 2 * LANES):
        other_column = column + LANES
        key_at = product * width + column
        query_at = key_at + width
        predicted, predicted_too = (
            load(buffers.products, key_at) * decayed,
            load(buffers.products, key_at + LANES) * decayed,
        )
        read, read_too = (
            load(buffers.products, query_at) * decayed,
            load(buffers.products, query_at + LANES) * decayed,
        )
        for above in range(position):
            before = line[ABOVE + above]
            by_key, by_query = splat(weights[1, above]), splat(weights[2, above])
            if before < held:
                start = before * value_size + update_at + column
                first, second = load(window.updates, start), load(window.updates, start + LANES)
            else:
                start = (before - held) * width + column
                first, second = load(updates, start), load(updates, start + LANES)
            predicted, predicted_too = (
                multiply_add(first, by_key, predicted),
                multiply_add(second, by_key, predicted_too),
            )
            read = multiply_add(first, by_query, read)
            read_too = multiply_add(second, by_query, read_too)
        start = row * width
        first = (load(updates, start + column) - predicted) * beta
        second = (load(updates, start + other_column) - predicted_too) * beta
        store(updates, start + column, first)
        store(updates, start + other_column, second)
        store(buffers.outputs, start + column, multiply_add(first, own, read))
        store(buffers.outputs, start + other_column, multiply_add(second, own, read_too))


@compiled(borrows=True)
def delta_rule(
    first: int,
    rows: int,
    plan: RowPlan,
    origins: TokenArray,
    chunks: int,
    committed: Floats,
    window: ChunkRows,
    buffers: DeltaBuffers,
) -> None:
    """Compute a head of a request's rows, whose keys, queries, scores, values, betas and sums of
    gates are in the buffers: outputs, updates in place of values, and the states after ``chunks``
    chunks that end with the rows in ``origins``."""
    blocks, size = committed.shape[0], committed.shape[1]
    ready, begin = 0, 0
    while begin < rows:
        state, end = plan[first + begin, STATE], begin + 1
        while end < min(rows, begin + RUN) and plan[first + end, STATE] == state:
            end += 1
        while ready < state:
            line = plan[first + origins[ready]]
            origin = window.held + origins[ready]
            _make_next(ready, origin, line, committed, window, buffers)
            ready += 1
        at_start = committed if state == 0 else buffers.states[state - 1]
        products = buffers.products
        vectors, count = buffers.keys_queries, 2 * (end - begin)
        multiply(vectors, 2 * begin, count, at_start, blocks, size, products, 0)
        for row in range(begin, end):
            line = plan[first + row]
            _update_row(line, row, 2 * (row - begin), window, buffers)
        begin = end
    while ready < chunks:
        line, origin = plan[first + origins[ready]], window.held + origins[ready]
        _make_next(ready, origin, line, committed, window, buffers)
        ready += 1


@compiled(borrows=True)
def _make_next(
    ready: int,
    origin: int,
    line: RowPlan,
    committed: Floats,
    window: ChunkRows,
    buffers: DeltaBuffers,
) -> None:
    """Make the state after the chunk that ends with a row."""
    for row in range(CHUNK - 1):
        buffers.path[row] = line[ABOVE + row]
    buffers.path[CHUNK - 1] = origin
    before = committed if line[STATE] == 0 else buffers.states[line[STATE] - 1]
    make_state(before, window, buffers, buffers.states[ready])


@compiled(borrows=True)
def gated_norm(
    outputs: Floats,
    start: int,
    gates: Floats,
    gate_at: int,
    weight: Floats,
    eps: float,
    normed: Floats,
    to: int,
) -> None:
    """Write the RMS norm of a head's output times silu of its gate."""
    size, total = len(weight), splat(np.float32(0))
    unity, zero, most = splat(np.float32(1)), splat(np.float32(0)), splat(np.float32(87))
    for i in range(0, size, LANES):
        value = load(outputs, start + i)
        total = multiply_add(value, value, total)
    mean = reduce_add(total) / np.float32(size)
    scale = splat(np.float32(1) / np.sqrt(mean + np.float32(eps)))
    for i in range(0, size, LANES):
        gate = load(gates, gate_at + i)
        silu = gate / (unity + exp(minimum(zero - gate, most)))
        store(normed, to + i, load(outputs, start + i) * scale * load(weight, i) * silu)
