"""Products in int8 against whole numbers summed one by one, and against floats."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from accel import int8
from accel.int8 import Int8, encoded, multiply_int8
from accel.matmul import BLOCK


def codes_of(row: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """A row in int8, and what one counts."""
    most = max(np.abs(row).max(), np.float32(1e-12))
    return np.rint(row * (np.float32(127) / most)).astype(np.int64), most / np.float32(127)


@pytest.mark.parametrize("depth", [BLOCK, 96, 256, 640])
@pytest.mark.parametrize("seed", range(4))
def test_products_are_sums_of_whole_numbers(depth: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    blocks = 3
    matrix = random.standard_normal((blocks * BLOCK, depth), np.float32)
    row = random.standard_normal(depth, np.float32) * np.float32(10.0 ** random.integers(-3, 4))
    codes, out = np.zeros(depth, np.int8), np.full(blocks * BLOCK + 1, np.nan, np.float32)
    multiply_int8(row, codes, Int8.of(matrix), blocks, out)
    words, scales = encoded(matrix)
    weights = words.view(np.uint8).reshape(len(matrix), depth).astype(np.int64) - 128
    given, counts = codes_of(row)
    assert (codes == given).all()
    assert out[:-1] == pytest.approx((weights @ given) * scales * counts, rel=1e-5)
    assert np.isnan(out[-1]), "nothing is written behind the last column"
    exact = matrix @ row
    assert np.abs(out[:-1] - exact).max() < 0.02 * np.abs(exact).max()


def test_nothing_times_anything_is_nothing() -> None:
    random = np.random.default_rng(0)
    out, codes = np.full(BLOCK, np.nan, np.float32), np.zeros(BLOCK, np.int8)
    matrix = Int8.of(random.standard_normal((BLOCK, BLOCK), np.float32))
    multiply_int8(np.zeros(BLOCK, np.float32), codes, matrix, 1, out)
    assert (out == 0).all()
    multiply_int8(np.ones(BLOCK, np.float32), codes, Int8.of(np.zeros((BLOCK, BLOCK))), 1, out)
    assert (out == 0).all()


_WITHOUT = """
import numpy as np, sys
from accel import processor
processor.FEATURES.difference_update(sys.argv[1].split())
from accel.int8 import Int8, multiply_int8
random = np.random.default_rng(3)
matrix = random.standard_normal((64, 96), np.float32)
out = np.zeros(64, np.float32)
row, codes = random.standard_normal(96, np.float32), np.zeros(96, np.int8)
multiply_int8(row, codes, Int8.of(matrix), 2, out)
print(out.tobytes().hex())
"""


@pytest.mark.parametrize("missing", ["avx512vnni", "avx512vnni avx2"])
def test_processors_without_such_products_find_the_same(missing: str, tmp_path: object) -> None:
    """In a process of its own, whose compiled code is not kept."""
    random = np.random.default_rng(3)
    matrix = random.standard_normal((64, 96), np.float32)
    out = np.zeros(64, np.float32)
    row = random.standard_normal(96, np.float32)
    multiply_int8(row, np.zeros(96, np.int8), Int8.of(matrix), 2, out)
    found = subprocess.run(
        [sys.executable, "-c", _WITHOUT, missing],
        check=True,
        capture_output=True,
        text=True,
        env={**__import__("os").environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert bytes.fromhex(found.stdout.strip()) == out.tobytes()
    assert int8.__doc__
