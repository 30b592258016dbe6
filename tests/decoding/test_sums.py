"""Sums that do not depend on the order of the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from accel.native.deterministic_sum import add_to, no_sums, sum_of
from accel.native.simd import load


@njit
def _summed(values):  # type: ignore[no-untyped-def]
    sums = no_sums()
    for i in range(0, len(values), 16):
        sums = add_to(sums, load(values, i))
    return sum_of(sums)


def test_sums_do_not_depend_on_the_order() -> None:
    random = np.random.default_rng(7)
    for _ in range(30):
        shares = np.exp(random.standard_normal(700) * 3 - 9).clip(0, 1).astype(np.float32)
        sums = set()
        for size in (700, 701, 1000, 4000):
            spread = np.full(size + -size % 16, 1e-38, np.float32)
            spread[random.permutation(size)[:700]] = shares
            sums.add(np.float32(_summed(spread)))
        assert len(sums) == 1
        assert sums.pop() == pytest.approx(shares.astype(np.float64).sum(), rel=1e-7)
