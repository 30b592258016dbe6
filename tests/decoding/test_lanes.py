"""Sixteen numbers at once against NumPy and torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numba import njit

from accel.lanes import (
    MOST_SUMMED,
    add_to,
    everywhere,
    exponential,
    highest,
    larger,
    load,
    multiply_add,
    no_sums,
    power_of_two,
    smaller,
    store,
    sum_of,
    total,
)


@njit
def _exponentials(values, out):  # type: ignore[no-untyped-def]
    for i in range(0, len(values), 16):
        store(out, i, exponential(load(values, i)))


@njit
def _copied(values, out):  # type: ignore[no-untyped-def]
    for i in range(0, values.size, 16):
        store(out, i, load(values, i))


@njit
def _joined(a, b, out):  # type: ignore[no-untyped-def]
    one, other, two = load(a, 0), load(b, 0), everywhere(np.float32(2))
    store(out, 0, one + other)
    store(out, 16, one - other)
    store(out, 32, one * other)
    store(out, 48, one / other)
    store(out, 64, larger(one, other))
    store(out, 80, smaller(one, other))
    store(out, 96, multiply_add(one, other, two))
    return total(one), highest(one)


@njit
def _powers(values, out):  # type: ignore[no-untyped-def]
    for i in range(0, len(values), 16):
        store(out, i, power_of_two(load(values, i)))


@njit
def _summed(values, like):  # type: ignore[no-untyped-def]
    sums = no_sums(like)
    for i in range(0, len(values), 16):
        sums = add_to(sums, load(values, i))
    return sum_of(sums, len(values) // 16)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-7), (np.int16, 1e-3)])
def test_sums_do_not_depend_on_the_order(dtype: type, tolerance: float) -> None:
    random = np.random.default_rng(7)
    like = np.empty(0, dtype)
    for _ in range(30):
        shares = np.exp(random.standard_normal(700) * 3 - 9).clip(0, 1).astype(np.float32)
        sums = set()
        for size in (700, 701, 1000, 4000):
            spread = np.full(size + -size % 16, 1e-38, np.float32)
            spread[random.permutation(size)[:700]] = shares
            sums.add(np.float32(_summed(spread, like)))
        assert len(sums) == 1
        assert sums.pop() == pytest.approx(shares.astype(np.float64).sum(), rel=tolerance)
    ones = np.ones(MOST_SUMMED, np.float32)
    ones[-1] = 0
    assert _summed(ones, like) == MOST_SUMMED - 1


def test_powers_of_two() -> None:
    values = np.linspace(-126, 100, 160_000).astype(np.float32)
    out = np.empty_like(values)
    _powers(values, out)
    np.testing.assert_allclose(out, np.exp2(values.astype(np.float64)), rtol=4e-7)
    _powers(np.full(16, -1e30, np.float32), out)
    assert (out[:16] < 2e-38).all()


def test_exponential() -> None:
    values = np.linspace(-87, 87, 100_000).astype(np.float32)
    out = np.empty_like(values)
    _exponentials(values, out)
    np.testing.assert_allclose(out, np.exp(values.astype(np.float64)), rtol=1e-5)
    near = np.abs(values) < 2
    np.testing.assert_allclose(out[near], np.exp(values[near].astype(np.float64)), rtol=4e-7)
    low = np.full(16, -1e30, np.float32)
    low[:8] = -np.inf
    _exponentials(low, out)
    assert (out[:16] >= 0).all()
    assert (out[:16] < 1e-37).all()


def test_operations() -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 16)).astype(np.float32)
    out = np.empty((7, 16), np.float32)
    summed, top = _joined(a, b, out)
    expected = a + b, a - b, a * b, a / b, np.maximum(a, b), np.minimum(a, b)
    for got, want in zip(out, expected, strict=False):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_allclose(out[6], a.astype(np.float64) * b + 2, rtol=1e-6)
    np.testing.assert_allclose(summed, a.sum(), rtol=1e-5)
    assert top == a.max()


def test_rounding_to_bf16_is_torchs() -> None:
    random = np.random.default_rng(1)
    values = (random.standard_normal((64, 64)) * 10.0 ** random.integers(-20, 20, (64, 64))).astype(
        np.float32
    )
    stored, widened = np.empty(values.shape, np.int16), np.empty(values.shape, np.float32)
    _copied(values, stored)
    rounded = torch.from_numpy(values).to(torch.bfloat16)
    assert (stored == rounded.view(torch.int16).numpy()).all()
    _copied(stored, widened)
    assert (widened == rounded.float().numpy()).all()
