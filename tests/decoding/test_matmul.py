"""The kernel for products of few rows against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from accel.models.cpu.matmul import BLOCK, multiply, narrow, packed, row_dtype, wide

KINDS = [*sorted({("f4", "f4"), ("i2", "i2"), ("i2", row_dtype("i2").str[1:])}), ("u2", "f4")]
"""Numbers of a matrix, and of the rows that are multiplied with it."""


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


@pytest.mark.parametrize(("dtype", "kept"), KINDS)
def test_products_of_any_number_of_rows(dtype: Any, kept: Any) -> None:
    """Against float64, at every number of rows up to 64 and some beyond."""
    for seed, rows in enumerate([*range(1, 66), 100, 127]):
        random = np.random.default_rng(seed)
        columns = int(random.integers(1, 100))
        in_features = 2 * int(random.integers(1, 50))
        used = 2 * int(random.integers(1, in_features // 2 + 1))
        skipped = int(random.integers(0, 3))
        weight, inputs = (
            np.empty((columns, in_features), dtype),
            np.empty((rows + skipped, in_features), kept),
        )
        for stored in (weight, inputs):
            _narrow_all(random.standard_normal(stored.shape, np.float32), stored)
        exact_weight, exact_inputs = np.empty(weight.shape), np.empty(inputs.shape)
        _widen_all(weight, exact_weight)
        _widen_all(inputs, exact_inputs)
        matrix = packed(weight)
        assert matrix.shape[0] == -(-columns // BLOCK)
        out = np.full((rows, len(matrix) * BLOCK), np.nan, np.float32)
        multiply(
            inputs, skipped, rows, matrix, len(matrix), used // (2 if dtype == "i2" else 1), out, 0
        )
        expected = exact_inputs[skipped:, :used] @ exact_weight[:, :used].T
        np.testing.assert_allclose(out[:, :columns], expected, atol=1e-4, err_msg=f"seed {seed}")
        assert (out[:, columns:] == 0).all()


@pytest.mark.parametrize(("dtype", "kept"), KINDS)
def test_the_sum_of_a_row_does_not_depend_on_its_company(dtype: Any, kept: Any) -> None:
    random = np.random.default_rng(0)
    weight, inputs = np.empty((96, 96), dtype), np.empty((64, 96), kept)
    for stored in (weight, inputs):
        _narrow_all(random.standard_normal(stored.shape, np.float32), stored)
    matrix = packed(weight)
    in_features = 48 if dtype == "i2" else 96
    alone = np.empty((64, 96), np.float32)
    for row in range(64):
        multiply(inputs, row, 1, matrix, 3, in_features, alone[row : row + 1], 0)
    for rows in range(1, 65):
        together = np.empty((rows, 96), np.float32)
        multiply(inputs, 64 - rows, rows, matrix, 3, in_features, together, 0)
        assert (together == alone[64 - rows :]).all(), rows


@pytest.mark.parametrize("blocks", [1, 3])
def test_rows_kept_wide_have_the_same_sums(blocks: int) -> None:
    """To the last bit those of the same rows as pairs."""
    random = np.random.default_rng(blocks)
    numbers = random.standard_normal((blocks * BLOCK + 13, 70), np.float32)
    pairs, kept = np.empty((13, 70), np.int16), np.empty((13, 70), row_dtype(np.int16))
    for stored in (pairs, kept):
        _narrow_all(numbers[:13], stored)
    weight = np.empty((blocks * BLOCK, 70), np.int16)
    _narrow_all(numbers[13:], weight)
    for rows in range(1, 14):
        found = [np.empty((rows, blocks * BLOCK), np.float32) for _ in range(2)]
        for inputs, out in zip((pairs, kept), found, strict=True):
            multiply(inputs, 0, rows, packed(weight), blocks, 35, out, 0)
        assert (found[0] == found[1]).all(), rows


def test_rounding_to_bf16_is_torchs() -> None:
    import torch

    random = np.random.default_rng(1)
    values = (random.standard_normal((64, 64)) * 10.0 ** random.integers(-20, 20, (64, 64))).astype(
        np.float32
    )
    stored = np.empty(values.shape, np.int16)
    _narrow_all(values, stored)
    rounded = torch.from_numpy(values).to(torch.bfloat16)
    assert (stored == rounded.view(torch.int16).numpy()).all()
    kept = np.empty(values.shape, np.int32)
    _narrow_all(values, kept)
    for each in (stored, kept):
        widened = np.empty(values.shape, np.float32)
        _widen_all(each, widened)
        assert (widened == rounded.float().numpy()).all()
