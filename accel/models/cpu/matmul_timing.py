"""How long the matrix products of a compiled forward take: nearly all of its time, and compiled in
a second where the whole takes half a minute."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from accel.models.costs.forward_costs import ForwardCosts
from accel.models.cpu.matmul import BLOCK, Packed, multiply, row_dtype
from accel.models.cpu.weights import Weights
from operating_system.system import is_windows

ROWS = (1, 8, 32)

_CONTEXT = 512
"""Products are the same behind every context."""


def product_costs(weights: Weights, budget_s: float) -> ForwardCosts:
    """t(T) of the products of a forward by one thread, measured for about ``budget_s`` seconds.

    All matrices are read from first to last, so they are in the caches as far as in a forward. The
    least of several rounds is taken, of the time of this thread where the system counts it.
    """
    clock = time.perf_counter if is_windows() else time.thread_time
    stacks = weights.qkv, weights.output, weights.gate_up, weights.down
    matrices = [stack[layer] for layer in range(len(weights.qkv)) for stack in stacks]
    products = _Products([*matrices, weights.head[0]], weights.embedding.dtype)
    for rows in ROWS:
        products.compute(rows)
    least = np.full(len(ROWS), np.inf)
    ends = time.perf_counter() + budget_s
    while time.perf_counter() < ends:
        for place, rows in enumerate(ROWS):
            started = clock()
            products.compute(rows)
            least[place] = min(least[place], clock() - started)
    return ForwardCosts([_CONTEXT], list(ROWS), least[None])


class _Products:
    """Matrices, and buffers for inputs and outputs."""

    def __init__(self, matrices: list[Packed], dtype: np.dtype[Any]) -> None:
        self._matrices = matrices
        # A word of a matrix is one float32, or two numbers of bf16.
        each = np.dtype(np.float32).itemsize // dtype.itemsize
        shapes = [(max(ROWS), len(matrix[0]) * each) for matrix in matrices]
        self._inputs = [np.zeros(shape, row_dtype(dtype)) for shape in shapes]
        most = max(len(matrix) for matrix in matrices)
        self._output = np.empty((max(ROWS), most * BLOCK), np.float32)

    def compute(self, rows: int) -> None:
        """Multiply so many rows with every matrix."""
        for inputs, matrix in zip(self._inputs, self._matrices, strict=True):
            blocks, in_features = matrix.shape[:2]
            multiply(inputs, 0, rows, matrix, blocks, in_features, self._output, 0)
