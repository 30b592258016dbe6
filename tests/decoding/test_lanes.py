"""Sixteen numbers at once against NumPy and torch."""

from __future__ import annotations

import numpy as np
from numba import njit

from accel.native.simd import (
    exp,
    exp2,
    load,
    masked_load,
    maximum,
    minimum,
    multiply_add,
    reduce_add,
    reduce_max,
    splat,
    store,
)


@njit
def _exponentials(values, out):  # type: ignore[no-untyped-def]
    for i in range(0, len(values), 16):
        store(out, i, exp(load(values, i)))


@njit
def _copied(values, out):  # type: ignore[no-untyped-def]
    for i in range(0, values.size, 16):
        store(out, i, load(values, i))


@njit
def _joined(a, b, out):  # type: ignore[no-untyped-def]
    each, other, two = load(a, 0), load(b, 0), splat(np.float32(2))
    store(out, 0, each + other)
    store(out, 16, each - other)
    store(out, 32, each * other)
    store(out, 48, each / other)
    store(out, 64, maximum(each, other))
    store(out, 80, minimum(each, other))
    store(out, 96, multiply_add(each, other, two))
    return reduce_add(each), reduce_max(each)


@njit
def _powers(values, out):  # type: ignore[no-untyped-def]
    for i in range(0, len(values), 16):
        store(out, i, exp2(load(values, i)))


@njit
def _some(values, at, count, out):  # type: ignore[no-untyped-def]
    store(out, 0, masked_load(values, at, count))


def test_powers_of_two() -> None:
    values = np.linspace(-126, 100, 160_000).astype(np.float32)
    out = np.empty_like(values)
    _powers(values, out)
    np.testing.assert_allclose(out, np.exp2(values.astype(np.float64)), rtol=3e-7)
    _powers(np.full(16, -1e30, np.float32), out)
    assert (out[:16] < 2e-38).all()


def test_some_numbers_and_zeros_behind_them() -> None:
    values, out = np.arange(1, 33, dtype=np.float32), np.empty(16, np.float32)
    for at, count in ((0, 16), (3, 40), (16, 16), (20, 12), (31, 1), (5, 0), (5, -2)):
        _some(values, at, count, out)
        expected = values[at : at + max(min(count, 16), 0)]
        np.testing.assert_array_equal(out, np.pad(expected, (0, 16 - len(expected))))


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
    for actual, want in zip(out, expected, strict=False):
        np.testing.assert_array_equal(actual, want)
    np.testing.assert_allclose(out[6], a.astype(np.float64) * b + 2, rtol=1e-6)
    np.testing.assert_allclose(summed, a.sum(), rtol=1e-5)
    assert top == a.max()
