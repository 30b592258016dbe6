"""Products by tile registers against their order of additions, written out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from small_model import SMALL_MODEL

from accel.batch import chain_batch
from accel.models.cpu.amx import TILE_PAIRS, multiply_by_tiles
from accel.models.cpu.llama import CompiledLlama
from accel.models.cpu.matmul import BLOCK, multiply, multiply_in_order, packed, rounded_bits
from accel.models.hf_loading import load_module
from accel.native.aligned_memory import LINE, copied, empty, zeros
from accel.native.cpu_features import HAS_TILES

with_tiles = pytest.mark.skipif(not HAS_TILES, reason="the processor has no tile registers")

STEP = 2 * TILE_PAIRS
"""Numbers that are summed at once."""


def widened(bits: NDArray[np.int16]) -> NDArray[np.float64]:
    return (bits.astype(np.int32) << 16).view(np.float32).astype(np.float64)


def slowly(inputs: NDArray[np.int16], weight: NDArray[np.int16]) -> NDArray[np.float32]:
    """Rows times columns: in every step those at even places, those at odd ones, and both."""
    x, w = widened(inputs), widened(weight)
    sums = np.zeros((len(x), len(w)), np.float32)
    for start in range(0, x.shape[1], STEP):
        both = np.zeros((2, len(x), len(w)), np.float32)
        for place in range(start, start + STEP):
            # Rounded once: a product of bf16 numbers is exact in float64.
            both[place % 2] = (both[place % 2] + np.outer(x[:, place], w[:, place])).astype("f4")
        sums += both[0] + both[1]
    return sums


def numbers(random: np.random.Generator, *shape: int) -> NDArray[np.int16]:
    return rounded_bits(random.standard_normal(shape).astype(np.float32))


@with_tiles
@pytest.mark.parametrize("rows", [*range(1, 51), 63, 64, 65, 97, 128])
def test_all_rows_are_summed_in_the_same_order(rows: int) -> None:
    random = np.random.default_rng(rows)
    columns, steps = int(random.integers(1, 100)), int(random.integers(1, 8))
    skipped, column = int(random.integers(0, 3)), BLOCK * int(random.integers(0, 2))
    weight = numbers(random, columns, STEP * steps)
    inputs = numbers(random, rows + skipped, STEP * (steps + 1))
    matrix = packed(weight)
    width = len(matrix) * BLOCK
    out = np.full((rows + 1, column + width + BLOCK), np.nan, np.float32)
    multiply(inputs, skipped, rows, matrix, len(matrix), matrix.shape[1], out, column)
    expected = slowly(inputs[skipped:, : STEP * steps], weight)
    found = out[:rows, column : column + columns]
    assert (found == expected).all(), f"seed {rows}: {np.abs(found - expected).max()}"
    assert np.isnan(out[rows]).all(), "nothing is written behind the last row"
    assert np.isnan(out[:rows, :column]).all()
    assert np.isnan(out[:rows, column + width :]).all()


@with_tiles
def test_other_depths_are_summed_in_order() -> None:
    random = np.random.default_rng(0)
    inputs, matrix = numbers(random, 5, 64), packed(numbers(random, 70, 64))
    for in_features in range(1, 33):
        found, expected = np.empty((2, 5, 96), np.float32)
        multiply(inputs, 0, 5, matrix, 3, in_features, found, 0)
        ordered = multiply_by_tiles if in_features % TILE_PAIRS == 0 else multiply_in_order
        ordered(inputs, 0, 5, matrix, 3, in_features, expected, 0)
        assert (found == expected).all(), in_features


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_skipped_weights_count_as_nothing(dtype: type) -> None:
    random = np.random.default_rng(1)
    values = random.standard_normal((70, 96)).astype(np.float32)
    given = random.standard_normal((9, 96)).astype(np.float32)
    weight, inputs = (a if dtype is np.float32 else rounded_bits(a) for a in (values, given))
    matrix, pair = packed(weight), 4 // inputs.itemsize
    for skipped in range(0, 96, 2):
        rest = np.ascontiguousarray(inputs[:, skipped:])
        nothing = inputs.copy()
        nothing[:, :skipped] = 0
        found, expected = np.empty((2, 9, 96), np.float32)
        in_features = (96 - skipped) // pair
        multiply_in_order(rest, 0, 9, matrix, 3, in_features, found, 0, skipped // pair)
        multiply_in_order(nothing, 0, 9, matrix, 3, matrix.shape[1], expected, 0)
        assert (found == expected).all(), skipped


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 1000, 7)])
def test_arrays_begin_at_a_line(shape: tuple[int, ...]) -> None:
    for dtype in (np.int8, np.int16, np.float32):
        made = zeros(shape, dtype)
        assert not made.any()
        source = np.arange(made.size).reshape(shape[::-1]).T.astype(dtype)
        for array in (made, empty(shape, dtype), copied(source)):
            assert array.ctypes.data % LINE == 0
            assert (array.shape, array.dtype) == (shape, dtype)
            assert array.flags.c_contiguous
            assert array.flags.writeable
        assert (copied(source) == source).all()


_WITHOUT = """
import sys
import numpy as np, torch
from accel.native import cpu_features
cpu_features.HAS_TILES = False
sys.path[:0] = {folders!r}
from test_tiles import logits_of_a_text
np.save({target!r}, logits_of_a_text())
"""


def logits_of_a_text() -> NDArray[np.float32]:
    module = load_module(SMALL_MODEL, torch.bfloat16, torch.device("cpu"), "eager")
    model = CompiledLlama.from_module(module)
    assert model is not None
    tokens = np.random.default_rng(0).integers(0, 8192, 300).astype(np.int32)
    logits = model.forward(chain_batch(tokens, 290), [model.new_cache(300)])
    return np.stack([logits.row(number) for number in range(10)])


@with_tiles
def test_a_process_that_may_not_use_them_computes_the_same(tmp_path: Path) -> None:
    """With compiled code of its own, and up to the rounding of other orders."""
    target = tmp_path / "logits.npy"
    program = _WITHOUT.format(
        folders=list(map(str, Path(__file__).parents[:2])), target=str(target)
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    found, expected = np.load(target), logits_of_a_text()
    assert (found != expected).any(), "the other order was not taken"
    assert np.abs(found - expected).mean() < 0.02 * expected.std()
