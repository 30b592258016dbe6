"""The matrices of a compiled forward, of one kind in all layers: ``matmul.packed``, [layers,
blocks, ..], or quantised parts beside each other, a ``quantised.matrix.Place`` each, int64 [layers,
parts, 5]."""

from __future__ import annotations

from typing import Any

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
from accel.native.numba_cache import compiled
from accel.native.simd import LANES, load, store

Matrices = NDArray[Any]
"""Packed arrays, or descriptors of quantised matrices (``quantised.matrix``)."""

_GROUPS = BLOCK // COLUMNS


def is_quantised(matrices: Matrices) -> bool:
    """Return whether these are descriptors of quantised matrices."""
    return bool(matrices.dtype == np.int64)


def _are_descriptors(kind: Any) -> bool:
    return isinstance(kind, types.Array) and kind.dtype == types.int64


def _compile(function: Any, index: int, of_packed: Any, of_quantised: Any) -> None:
    """Have compiled code call one of two for ``function``, by the kind of the matrices that it is
    given at ``index``."""

    @overload(function)
    def choose(*arguments: Any) -> Any:
        chosen = of_quantised if _are_descriptors(arguments[index]) else of_packed

        def call(*arguments: Any) -> Any:
            return chosen(*arguments)

        return call


def blocks_of(matrices: Matrices) -> int:
    """Return the number of blocks of columns of each matrix."""
    if is_quantised(matrices):
        return int(matrices[0, :, 3].sum()) // _GROUPS
    return int(matrices.shape[1])


@compiled(borrows=True)
def _blocks_of_parts(matrices: Matrices) -> int:
    groups = 0
    for column_part in range(matrices.shape[1]):
        groups += matrices[0, column_part, 3]
    return groups // _GROUPS


@compiled(borrows=True)
def _blocks_of_packed(matrices: Matrices) -> int:
    count: int = matrices.shape[1]
    return count


_compile(blocks_of, 0, _blocks_of_packed, _blocks_of_parts)


def quantise_row(
    inputs: Floats, row: int, blocks: tuple[int, int], matrices: Matrices, q8: Q8Blocks
) -> None:
    """Quantise some blocks of a row, from the first to before the last, for quantised matrices;
    nothing for packed ones."""
    raise AssertionError("for compiled functions alone")


@compiled(borrows=True)
def _quantise(
    inputs: Floats,
    row: int,
    blocks: tuple[int, int],
    _matrices: Matrices,
    q8: Q8Blocks,
) -> None:
    quantise_blocks(inputs, row, blocks[0], blocks[1], q8)


@compiled(borrows=True)
def _nothing(
    _inputs: Floats,
    _row: int,
    _blocks: tuple[int, int],
    _matrices: Matrices,
    _q8: Q8Blocks,
) -> None:
    """Packed matrices read rows as they are."""


_compile(quantise_row, 3, _nothing, _quantise)


def hand_over(
    product: Floats,
    row: int,
    blocks: tuple[int, int],
    matrices: Matrices,
    inputs: Floats,
    q8: Q8Blocks,
) -> None:
    """Give some blocks of a row, which ``product`` has from its first column on, to the next
    product: as they are in ``inputs`` for packed matrices, quantised in ``q8`` for others."""
    raise AssertionError("for compiled functions alone")


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


_compile(hand_over, 3, _hand_over, _hand_over_quantised)


def project(
    inputs: Floats,
    first_row: int,
    rows: int,
    matrices: Matrices,
    layer: int,
    blocks: tuple[int, int],
    output: Floats,
    column: int,
    q8: Q8Blocks,
) -> None:
    """Write the products of rows, from ``first_row`` on, with some blocks of a layer's matrix, from
    the first to before the last, into the first rows of output, from ``column`` on. For quantised
    matrices ``q8`` holds the rows, quantised."""
    raise AssertionError("for compiled functions alone")


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


_compile(project, 3, _project_packed, _project_quantised)


def embed(tokens: NDArray[np.int32], embedding: Matrices, x: Floats) -> None:
    """Write the embeddings of tokens. embedding: stored [vocabulary, hidden_size], or the
    descriptors of a quantised matrix, and of another for tokens after its columns [1 or 2, 1,
    5]."""
    raise AssertionError("for compiled functions alone")


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


_compile(embed, 1, _embed_stored, _embed_quantised)
