"""The layers of the compiled forward: their steps, and the items of these that threads take.

Columns of a matrix, heads of attention and rows of a norm are computed apart from each other. What
a product's columns need next, and nothing else, is done by who computed them: a bias, a rotation, a
gate, a sum, rounding to eight bits.
"""

from __future__ import annotations

from accel.models.cpu import attention as compiled_attention
from accel.models.cpu import layer_matrices, thread_state
from accel.models.cpu import parts as compiled_parts
from accel.models.cpu import task as tasks
from accel.models.cpu.attention import QUERIES, attend
from accel.models.cpu.layer_matrices import Matrices, Rows, blocks_of, embed, prepare, project
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.parts import add, gate, normalise, place_head
from accel.models.cpu.quantised.activations import Records
from accel.models.cpu.task import Given
from accel.models.cpu.thread_state import OpenThreadState
from accel.native.numba_cache import compiled_with

LAYER_STEPS = 7
FIRST_NORM, HEADS, ATTENTION, OUTPUT, SECOND_NORM, GATED_UNIT, DOWN = range(LAYER_STEPS)

ROWS = 4
"""Rows of a norm that are taken at once."""

_SHARE = 4
"""Items of a matrix for each thread, at least: as much as one can be later than others."""

_MOST_PRODUCTS = 1 << 22
"""Products of numbers in an item, about: some ten microseconds."""

_PARTS = compiled_attention, compiled_parts, thread_state, layer_matrices, tasks


@compiled_with(borrows=True)
def cuts_of(blocks: int, products: int, threads: int) -> int:
    """Into how many items some blocks of columns are cut, of so many products each."""
    return min(blocks, max(_SHARE * threads, blocks * products // _MOST_PRODUCTS))


@compiled_with(borrows=True)
def between(blocks: int, cuts: int, item: int) -> tuple[int, int]:
    """The first block of an item, and the one behind its last."""
    return blocks * item // cuts, blocks * (item + 1) // cuts


@compiled_with(borrows=True)
def query_parts(queries: int, kv_heads: int, threads: int) -> int:
    """Into how many items the queries of a head of keys are cut: they read the same keys."""
    least = 1 if kv_heads % threads == 0 else min(queries, threads)
    return max(least, (queries + QUERIES - 1) // QUERIES)


@compiled_with(*_PARTS, borrows=True, forceinline=True, inner=True)
def items_of(kind: int, rows: int, own: OpenThreadState) -> int:
    """How many items a step of a layer has."""
    shape, weights, threads = own.shape, own.weights, own.threads
    if kind == HEADS:
        return shape.heads + 2 * shape.kv_heads
    if kind == ATTENTION:
        queries = rows * shape.heads // shape.kv_heads
        return shape.kv_heads * query_parts(queries, shape.kv_heads, threads)
    if kind == OUTPUT:
        depth = own.scratch.attended.shape[1]
        return cuts_of(blocks_of(weights.output), rows * depth * BLOCK, threads)
    if kind == GATED_UNIT:
        depth = own.scratch.x.shape[1]
        return cuts_of(blocks_of(weights.gate_up) // 2, 2 * rows * depth * BLOCK, threads)
    if kind == DOWN:
        depth = own.scratch.gated.shape[1]
        return cuts_of(blocks_of(weights.down), rows * depth * BLOCK, threads)
    return (rows + ROWS - 1) // ROWS


@compiled_with(*_PARTS, borrows=True, forceinline=True, inner=True)
def compute(
    layer: int, kind: int, item: int, items: int, given: Given, own: OpenThreadState
) -> None:
    """Compute an item of a step of a layer."""
    room, weights = own.scratch, own.weights
    if kind == FIRST_NORM:
        _begin_layer(layer, item, given, own)
    elif kind == HEADS:
        _project_head(layer, item, given, own)
    elif kind == ATTENTION:
        _attend(layer, item, items, given, own)
    elif kind == OUTPUT:
        inputs, matrices, records = room.attended, weights.output, room.records
        _add_product(layer, item, items, len(given.tokens), inputs, matrices, records, own)
    elif kind == SECOND_NORM:
        first, last = ROWS * item, min(ROWS * (item + 1), len(given.tokens))
        weight = own.weights.mlp_norm[layer]
        normalise(own.scratch.x, first, last, weight, own.shape.eps, own.scratch.normed)
        _prepare(own.scratch.normed, first, last, own.weights.gate_up, own.scratch.records)
    elif kind == GATED_UNIT:
        _gate(layer, item, items, len(given.tokens), own)
    else:
        inputs, matrices, records = room.gated, weights.down, room.gated_records
        _add_product(layer, item, items, len(given.tokens), inputs, matrices, records, own)


@compiled_with(layer_matrices, borrows=True)
def _prepare(inputs: Rows, first: int, last: int, matrices: Matrices, records: Records) -> None:
    for row in range(first, last):
        prepare(inputs, row, (0, inputs.shape[1] // BLOCK), matrices, records)


@compiled_with(*_PARTS, borrows=True, forceinline=True, inner=True)
def _begin_layer(layer: int, item: int, given: Given, own: OpenThreadState) -> None:
    room, weights = own.scratch, own.weights
    first, last = ROWS * item, min(ROWS * (item + 1), len(given.tokens))
    if layer == 0:
        embed(given.tokens[first:last], weights.embedding, room.x[first:last])
    normalise(room.x, first, last, weights.attention_norm[layer], own.shape.eps, room.normed)
    _prepare(room.normed, first, last, weights.qkv, room.records)


@compiled_with(*_PARTS, borrows=True, forceinline=True, inner=True)
def _project_head(layer: int, head: int, given: Given, own: OpenThreadState) -> None:
    """Of queries, keys or values."""
    room, weights, shape, rows = own.scratch, own.weights, own.shape, len(given.tokens)
    blocks = shape.depth // BLOCK
    cut = head * blocks, (head + 1) * blocks
    column = head * shape.depth
    project(room.normed, 0, rows, weights.qkv, layer, cut, room.qkv, column, room.records)
    place_head(
        layer,
        head,
        room.qkv,
        weights.qkv_bias[layer],
        weights.query_norm[layer],
        weights.key_norm[layer],
        given.offsets,
        given.past,
        shape,
        own.rotations,
        own.kept,
        room.queries,
    )


@compiled_with(*_PARTS, borrows=True, forceinline=True, inner=True)
def _attend(layer: int, item: int, items: int, given: Given, own: OpenThreadState) -> None:
    """By some queries of a head of keys."""
    room, shape = own.scratch, own.shape
    group = shape.heads // shape.kv_heads
    parts = items // shape.kv_heads
    head, part = item // parts, item % parts
    first, last = between(len(given.tokens) * group, parts, part)
    attend(
        room.queries,
        own.key_words[layer, head],
        own.value_words[layer, head],
        own.kept.key_scales[layer, head],
        own.kept.value_scales[layer, head],
        given.mask,
        given.offsets,
        given.past,
        shape,
        head,
        first,
        last,
        own.room,
        room.attended,
    )
    blocks = shape.depth // BLOCK
    for query in range(first, last):
        block = (head * group + query % group) * blocks
        cut = block, block + blocks
        prepare(room.attended, query // group, cut, own.weights.output, room.records)


@compiled_with(*_PARTS, borrows=True, forceinline=True, inner=True)
def _add_product(
    layer: int,
    item: int,
    items: int,
    rows: int,
    inputs: Rows,
    matrices: Matrices,
    records: Records,
    own: OpenThreadState,
) -> None:
    """Add a product to the residual stream: of what was attended, or of the gated unit."""
    room = own.scratch
    cut = between(blocks_of(matrices), items, item)
    first, last = cut[0] * BLOCK, cut[1] * BLOCK
    project(inputs, 0, rows, matrices, layer, cut, room.added, first, records)
    add(room.x, room.added, rows, first, last)


@compiled_with(*_PARTS, borrows=True, forceinline=True, inner=True)
def _gate(layer: int, item: int, items: int, rows: int, own: OpenThreadState) -> None:
    room, gate_up = own.scratch, own.weights.gate_up
    blocks = blocks_of(gate_up) // 2
    first, last = between(blocks, items, item)
    for before in (0, blocks):
        cut = before + first, before + last
        column = cut[0] * BLOCK
        project(room.normed, 0, rows, gate_up, layer, cut, room.gate_up, column, room.records)
    gate(room.gate_up, room.gated, rows, first * BLOCK, last * BLOCK)
    for row in range(rows):
        prepare(room.gated, row, (first, last), own.weights.down, room.gated_records)


__all__ = ["LAYER_STEPS", "ROWS", "between", "compute", "cuts_of", "items_of", "query_parts"]
