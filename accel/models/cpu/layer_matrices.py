"""The matrices of a compiled forward, of one kind in all layers: ``matmul.packed``, [layers,
blocks, ..], or quantised parts beside each other, a ``quantised.matrix.Place`` each, int64 [layers,
parts, 5]."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from accel.models.cpu import matmul
from accel.models.cpu.attention import Floats
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.quantised.activations import Q8Blocks, quantise_blocks, quantise_from
from accel.models.cpu.quantised.matrix import multiply as multiply_quantised
from accel.models.cpu.quantised.packed_layouts import COLUMNS
from accel.models.cpu.quantised.stored_rows import write_row
from accel.native.numba_cache import Function, compiled
from accel.native.simd import LANES, load, store

Matrices = NDArray[Any]
"""Packed arrays, or descriptors of quantised matrices (``quantised.matrix``)."""

_GROUPS = BLOCK // COLUMNS


def is_quantised(matrices: Matrices) -> bool:
    """Return whether these are descriptors of quantised matrices."""
    return bool(matrices.dtype == np.int64)


def _are_descriptors(kind: Any) -> bool:
    return isinstance(kind, types.Array) and kind.dtype == types.int64


def _of_either(index: int, of_packed: Function, of_quantised: Function) -> Function:
    """Return a function for compiled code, which calls one of two, by the kind of the matrices that
    it is given at ``index``."""

    def function(*_arguments: Any) -> Any:
        raise AssertionError("for compiled functions alone")

    @overload(function)
    def choose(*arguments: Any) -> Any:
        chosen = of_quantised if _are_descriptors(arguments[index]) else of_packed

        def call(*arguments: Any) -> Any:
            return chosen(*arguments)

        return call

    return cast("Function", function)


def blocks_of(matrices: Matrices) -> int:
    """Return the number of blocks of columns of each matrix."""
    if is_quantised(matrices):
        return int(matrices[0, :, 3].sum()) // _GROUPS
    return int(matrices.shape[1])


@overload(blocks_of)
def _blocks_of(matrices: Matrices) -> Any:
    def of_parts(matrices: Matrices) -> int:
        groups = 0
        for column_part in range(matrices.shape[1]):
            groups += matrices[0, column_part, 3]
        return groups // _GROUPS

    def of_packed(matrices: Matrices) -> int:
        count: int = matrices.shape[1]
        return count

    return of_parts if _are_descriptors(matrices) else of_packed


@compiled(borrows=True)
def _quantise(
    inputs: Floats, row: int, blocks: tuple[int, int], _matrices: Matrices, q8: Q8Blocks
) -> None:
    quantise_blocks(inputs, row, blocks[0], blocks[1], q8)


@compiled(borrows=True)
def _nothing(
    _inputs: Floats, _row: int, _blocks: tuple[int, int], _matrices: Matrices, _q8: Q8Blocks
) -> None:
    """Packed matrices read rows as they are."""


quantise_row = _of_either(3, _nothing, _quantise)
"""Quantises some blocks of a row, from the first to before the last, for quantised matrices."""


@compiled(borrows=True)
def _hand_over_quantised(
    product: Floats,
    row: int,
    blocks: tuple[int, int],
    _matrices: Matrices,
    inputs: Floats,
    q8: Q8Blocks,
) -> None:
    first, last = blocks
    to = row * (inputs.shape[1] // BLOCK) + first
    quantise_from(product, row * product.shape[1], q8, to, last - first)


@compiled(borrows=True)
def _hand_over(
    product: Floats,
    row: int,
    blocks: tuple[int, int],
    _matrices: Matrices,
    inputs: Floats,
    _q8: Q8Blocks,
) -> None:
    to, start = row * inputs.shape[1] + blocks[0] * BLOCK, row * product.shape[1]
    for i in range(0, (blocks[1] - blocks[0]) * BLOCK, LANES):
        store(inputs, to + i, load(product, start + i))


hand_over = _of_either(3, _hand_over, _hand_over_quantised)
"""Gives some blocks of a row, which ``product`` has from its first column on, to the next product:
as they are in ``inputs`` for packed matrices, quantised in ``q8`` for others."""


@compiled(borrows=True)
def _project_packed(
    inputs: Floats,
    first_row: int,
    rows: int,
    matrices: Matrices,
    layer: int,
    blocks: tuple[int, int],
    output: Floats,
    column: int,
    _q8: Q8Blocks,
) -> None:
    first, last = blocks
    chosen = matrices[layer, first:last]
    in_features = chosen.shape[1]
    matmul.multiply(inputs, first_row, rows, chosen, last - first, in_features, output, column)


@compiled(borrows=True)
def _project_quantised(
    _inputs: Floats,
    first_row: int,
    rows: int,
    matrices: Matrices,
    layer: int,
    blocks: tuple[int, int],
    output: Floats,
    column: int,
    q8: Q8Blocks,
) -> None:
    first, last = _GROUPS * blocks[0], _GROUPS * blocks[1]
    begin = 0
    for column_part in range(matrices.shape[1]):
        descriptor = matrices[layer, column_part]
        end = begin + descriptor[3]
        own_first, own_last = max(first, begin), min(last, end)
        to = column + (own_first - first) * COLUMNS
        multiply_quantised(
            descriptor, q8, first_row, rows, own_first - begin, own_last - begin, output, to
        )
        begin = end


project = _of_either(3, _project_packed, _project_quantised)
"""Writes the products of rows, from ``first_row`` on, with some blocks of a layer's matrix, from
the first to before the last, into the first rows of output, from ``column`` on. For quantised
matrices ``q8`` holds the rows, quantised."""


@compiled(borrows=True)
def _embed_stored(tokens: NDArray[np.int32], embedding: Matrices, x: Floats) -> None:
    hidden_size = embedding.shape[1]
    for row in range(len(tokens)):
        for i in range(0, hidden_size, LANES):
            store(x, row * hidden_size + i, load(embedding, tokens[row] * hidden_size + i))


@compiled(borrows=True)
def _embed_quantised(tokens: NDArray[np.int32], embedding: Matrices, x: Floats) -> None:
    columns = embedding[0, 0, 3] * COLUMNS
    for row in range(len(tokens)):
        table = 0 if tokens[row] < columns else 1
        write_row(embedding[table, 0], tokens[row] - table * columns, x, row)


embed = _of_either(1, _embed_stored, _embed_quantised)
"""Writes the embeddings of tokens. embedding: stored [vocabulary, hidden_size], or the descriptors
of a quantised matrix, and of another for tokens after its columns [1 or 2, 1, 5]."""
