"""The matrices of a compiled forward, whichever way they are kept.

Those of one kind in all layers are either ``matmul.packed``, [layers, blocks, ..], or quantised:
then a layer's may consist of several whose columns stand beside each other, each of a form of its
own, and there is a ``quantised.matrix.Place`` for each of these, int64 [layers, parts, 5]. Blocks
have 32 columns. Rows that are multiplied with quantised matrices are prepared once for all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from accel.models.cpu import matmul
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.quantised import activations, forms, matrix, stored_rows
from accel.models.cpu.quantised.activations import Records, encode_blocks
from accel.models.cpu.quantised.forms import COLUMNS
from accel.models.cpu.quantised.matrix import multiply as multiply_quantised
from accel.models.cpu.quantised.stored_rows import write_row
from accel.native import simd
from accel.native.numba_cache import compiled_with
from accel.native.simd import LANES, load, store

Matrices = NDArray[Any]
"""Packed, or places."""

Rows = NDArray[Any]
"""Float32, or as ``matmul.row_dtype`` has them."""

_GROUPS = BLOCK // COLUMNS


def is_quantised(matrices: Matrices) -> bool:
    """Whether these are places of quantised matrices."""
    return bool(matrices.dtype == np.int64)


def _are_places(kind: Any) -> bool:
    return isinstance(kind, types.Array) and kind.dtype == types.int64


def blocks_of(matrices: Matrices) -> int:
    """Blocks of columns of each."""
    if is_quantised(matrices):
        return int(matrices[0, :, 3].sum()) // _GROUPS
    return int(matrices.shape[1])


@compiled_with(borrows=True)
def _blocks_of_parts(matrices: Matrices) -> int:
    groups = 0
    for part in range(matrices.shape[1]):
        groups += matrices[0, part, 3]
    return groups // _GROUPS


@compiled_with(borrows=True)
def _blocks_of_packed(matrices: Matrices) -> int:
    count: int = matrices.shape[1]
    return count


@overload(blocks_of)
def _blocks_of(matrices: Any) -> Any:
    chosen = _blocks_of_parts if _are_places(matrices) else _blocks_of_packed

    def implementation(matrices: Any) -> Any:
        return chosen(matrices)

    return implementation


def prepare(
    inputs: Rows, row: int, blocks: tuple[int, int], matrices: Matrices, records: Records
) -> None:
    """Write some blocks of a row to its records where quantised matrices take them, from the first
    to before the last."""
    raise AssertionError("for compiled functions alone")


@compiled_with(activations, simd, borrows=True)
def _encode(
    inputs: Rows, row: int, blocks: tuple[int, int], _matrices: Matrices, records: Records
) -> None:
    encode_blocks(inputs, row, blocks[0], blocks[1], records)


@compiled_with(borrows=True)
def _nothing(
    _inputs: Rows, _row: int, _blocks: tuple[int, int], _matrices: Matrices, _records: Records
) -> None:
    """Packed matrices take rows as they are."""


@overload(prepare)
def _prepare(inputs: Any, row: Any, blocks: Any, matrices: Any, records: Any) -> Any:
    chosen = _encode if _are_places(matrices) else _nothing

    def implementation(inputs: Any, row: Any, blocks: Any, matrices: Any, records: Any) -> Any:
        chosen(inputs, row, blocks, matrices, records)

    return implementation


def project(
    inputs: Rows,
    first_row: int,
    rows: int,
    matrices: Matrices,
    layer: int,
    blocks: tuple[int, int],
    output: NDArray[np.float32],
    column: int,
    records: Records,
) -> None:
    """Write the products of rows, from ``first_row`` on, with some blocks of a layer's matrix, from
    the first to before the last, into the first rows of output, from ``column`` on. Rows have been
    prepared in ``records``."""
    raise AssertionError("for compiled functions alone")


@compiled_with(simd, matmul, borrows=True)
def _project_packed(
    inputs: Rows,
    first_row: int,
    rows: int,
    matrices: Matrices,
    layer: int,
    blocks: tuple[int, int],
    output: NDArray[np.float32],
    column: int,
    _records: Records,
) -> None:
    first, last = blocks
    chosen = matrices[layer, first:last]
    depth = chosen.shape[1]
    matmul.multiply(inputs, first_row, rows, chosen, last - first, depth, output, column)


@compiled_with(forms, simd, matrix, borrows=True)
def _project_quantised(
    _inputs: Rows,
    first_row: int,
    rows: int,
    matrices: Matrices,
    layer: int,
    blocks: tuple[int, int],
    output: NDArray[np.float32],
    column: int,
    records: Records,
) -> None:
    first, last = _GROUPS * blocks[0], _GROUPS * blocks[1]
    begin = 0
    for part in range(matrices.shape[1]):
        place = matrices[layer, part]
        end = begin + place[3]
        own_first, own_last = max(first, begin), min(last, end)
        to = column + (own_first - first) * COLUMNS
        multiply_quantised(
            place, records, first_row, rows, own_first - begin, own_last - begin, output, to
        )
        begin = end


@overload(project)
def _project(
    inputs: Any,
    first_row: Any,
    rows: Any,
    matrices: Any,
    layer: Any,
    blocks: Any,
    output: Any,
    column: Any,
    records: Any,
) -> Any:
    chosen = _project_quantised if _are_places(matrices) else _project_packed

    def implementation(
        inputs: Any,
        first_row: Any,
        rows: Any,
        matrices: Any,
        layer: Any,
        blocks: Any,
        output: Any,
        column: Any,
        records: Any,
    ) -> Any:
        chosen(inputs, first_row, rows, matrices, layer, blocks, output, column, records)

    return implementation


def embed(tokens: NDArray[np.int32], embedding: Matrices, x: NDArray[np.float32]) -> None:
    """Write the embeddings of tokens. embedding: stored [vocabulary, width], or the place of a
    quantised matrix [1, 1, 5]."""
    raise AssertionError("for compiled functions alone")


@compiled_with(simd, borrows=True)
def _embed_stored(tokens: NDArray[np.int32], embedding: Matrices, x: NDArray[np.float32]) -> None:
    width = embedding.shape[1]
    for row in range(len(tokens)):
        for i in range(0, width, LANES):
            store(x, row * width + i, load(embedding, tokens[row] * width + i))


@compiled_with(stored_rows, borrows=True)
def _embed_quantised(
    tokens: NDArray[np.int32], embedding: Matrices, x: NDArray[np.float32]
) -> None:
    for row in range(len(tokens)):
        write_row(embedding[0, 0], tokens[row], x, row)


@overload(embed)
def _embed(tokens: Any, embedding: Any, x: Any) -> Any:
    chosen = _embed_quantised if _are_places(embedding) else _embed_stored

    def implementation(tokens: Any, embedding: Any, x: Any) -> Any:
        chosen(tokens, embedding, x)

    return implementation


__all__ = ["Matrices", "blocks_of", "embed", "is_quantised", "prepare", "project"]
