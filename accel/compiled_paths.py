"""The low-rank path of mask rows in the compiled forward."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from accel import matmul
from accel.mask_tokens import PROJECTIONS, MaskTokens
from accel.matmul import BLOCK, Packed, multiply, narrow, packed, row_dtype
from accel.sources.compiled import compiled_with

Floats = NDArray[np.float32]
Stored = NDArray[Any]


class Paths(NamedTuple):
    """What is added to the projections of mask rows, through ``down`` and then ``up``.

    All ``matmul.packed`` with the layer as first index, which has no entry where mask rows have no
    path of their own.
    """

    qkv_down: Packed
    qkv_up: Packed
    output_down: Packed
    output_up: Packed
    gate_up_down: Packed
    gate_up_up: Packed
    down_down: Packed
    down_up: Packed


class PathScratch(NamedTuple):
    """Room for some mask rows: low rank numbers, the same as stored, what is added."""

    low: Floats
    stored: Stored
    added: Floats

    @classmethod
    def room(cls, rows: int, paths: Paths) -> PathScratch:
        """Room for ``rows`` mask rows."""
        stored = np.dtype(np.float32 if paths.qkv_down.dtype == np.float32 else np.int16)
        pair = 4 // stored.itemsize
        widest = max((up.shape[1] for up in paths[1::2]), default=0) * BLOCK
        return cls(
            np.empty((rows, paths.qkv_down.shape[1] * BLOCK), np.float32),
            np.empty((rows, paths.qkv_up.shape[2] * pair), row_dtype(stored)),
            np.empty((rows, widest), np.float32),
        )


def no_paths(dtype: Any) -> Paths:
    """Nothing is added. ``dtype``: of stored numbers."""
    nothing = np.empty((0, 0, 0, BLOCK), np.float32 if dtype == np.float32 else np.int32)
    return Paths(*[nothing] * 8)


def pack_paths(mask_tokens: MaskTokens, dtype: Any) -> Paths:
    """The paths of mask tokens. ``dtype``: of stored numbers, float32 or int16 (bits of bf16)."""
    if not mask_tokens.paths:
        return no_paths(dtype)
    found = []
    for name in PROJECTIONS:
        for part in ("down", "up"):
            matrices = [getattr(layer[name], part).T for layer in mask_tokens.paths]
            found.append(np.stack([packed(_array(matrix)) for matrix in matrices]))
    return Paths(*found)


def _array(matrix: torch.Tensor) -> NDArray[Any]:
    matrix = matrix.contiguous()
    return (matrix if matrix.dtype == torch.float32 else matrix.view(torch.int16)).numpy()


@compiled_with(matmul, borrows=True)
def add_path(
    inputs: Stored,
    first: int,
    rows: int,
    down: Packed,
    up: Packed,
    scratch: PathScratch,
    output: Floats,
    first_block: int,
    last_block: int,
) -> None:
    """Add to ``rows`` rows of output, from ``first`` on, what the same rows of inputs give, in the
    columns of blocks from ``first_block`` to before ``last_block``."""
    low, stored, added = scratch.low, scratch.stored, scratch.added
    blocks, column = last_block - first_block, first_block * BLOCK
    multiply(inputs, first, rows, down, len(down), down.shape[1], low, 0)
    for row in range(rows):
        for i in range(stored.shape[1]):
            stored[row, i] = narrow(low[row, i], stored)
    multiply(stored, 0, rows, up[first_block:], blocks, up.shape[1], added, 0)
    for row in range(rows):
        for i in range(blocks * BLOCK):
            output[first + row, column + i] += added[row, i]
