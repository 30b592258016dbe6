"""The kernel for products of few rows against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from accel.models.cpu.matmul import BLOCK, multiply, narrow, packed, wide

KINDS = ["f4", "u2"]
"""Numbers of a matrix: float32, or bits of fp16."""


@njit
def _narrow_all(values, out):  # type: ignore[no-untyped-def]
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            out[i, j] = narrow(values[i, j], out)


@njit
def _widen_all(values, out):  # type: ignore[no-untyped-def]
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            out[i, j] = wide(values[i, j])


@pytest.mark.parametrize("dtype", KINDS)
def test_products_of_any_number_of_rows(dtype: Any) -> None:
    """Against float64, at every number of rows up to 64 and some beyond."""
    for seed, rows in enumerate([*range(1, 66), 100, 127]):
        random = np.random.default_rng(seed)
        columns = int(random.integers(1, 100))
        in_features = 2 * int(random.integers(1, 50))
        used = 2 * int(random.integers(1, in_features // 2 + 1))
        skipped = int(random.integers(0, 3))
        weight, inputs = (
            np.empty((columns, in_features), dtype),
            np.empty((rows + skipped, in_features), np.float32),
        )
        for stored in (weight, inputs):
            _narrow_all(random.standard_normal(stored.shape, np.float32), stored)
        exact_weight, exact_inputs = np.empty(weight.shape), np.empty(inputs.shape)
        _widen_all(weight, exact_weight)
        _widen_all(inputs, exact_inputs)
        matrix = packed(weight)
        assert matrix.shape[0] == -(-columns // BLOCK)
        out = np.full((rows, len(matrix) * BLOCK), np.nan, np.float32)
        multiply(inputs, skipped, rows, matrix, len(matrix), used, out, 0)
        expected = exact_inputs[skipped:, :used] @ exact_weight[:, :used].T
        np.testing.assert_allclose(out[:, :columns], expected, atol=1e-4, err_msg=f"seed {seed}")
        assert (out[:, columns:] == 0).all()


@pytest.mark.parametrize("dtype", KINDS)
def test_the_sum_of_a_row_does_not_depend_on_its_company(dtype: Any) -> None:
    random = np.random.default_rng(0)
    weight, inputs = np.empty((96, 96), dtype), np.empty((64, 96), np.float32)
    for stored in (weight, inputs):
        _narrow_all(random.standard_normal(stored.shape, np.float32), stored)
    matrix = packed(weight)
    alone = np.empty((64, 96), np.float32)
    for row in range(64):
        multiply(inputs, row, 1, matrix, 3, 96, alone[row : row + 1], 0)
    for rows in range(1, 65):
        together = np.empty((rows, 96), np.float32)
        multiply(inputs, 64 - rows, rows, matrix, 3, 96, together, 0)
        assert (together == alone[64 - rows :]).all(), rows


def test_rounding_to_fp16_is_numpys() -> None:
    random = np.random.default_rng(1)
    values = (random.standard_normal((64, 64)) * 10.0 ** random.integers(-9, 4, (64, 64))).astype(
        np.float32
    )
    stored, widened = np.empty(values.shape, np.uint16), np.empty(values.shape, np.float32)
    _narrow_all(values, stored)
    expected = values.astype(np.float16)
    assert (stored == expected.view(np.uint16)).all()
    _widen_all(stored, widened)
    assert (widened == expected).all()
