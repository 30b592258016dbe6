"""Products with quantised weights: their results, with any other work beside them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray
from slow_weights import SIZES, empty_q8, product, products, random_blocks, values_of, weights_of

from accel.errors import InvalidRequest
from accel.models.cpu.quantised.activations import quantise_rows
from accel.models.cpu.quantised.file_blocks import BLOCK_TYPES
from accel.models.cpu.quantised.instruction_sets import INSTRUCTION_SETS, chosen, here
from accel.models.cpu.quantised.matrix import QuantisedMatrix, multiply
from accel.models.cpu.quantised.packed_layouts import BLOCK, COLUMNS
from accel.models.cpu.quantised.stored_rows import write_row
from accel.native.cpu_features import FEATURES
from accel.native.processor import INSTRUCTIONS

Floats = NDArray[np.float32]

ONE_OF_EACH_FORM = ["Q8_0", "Q4_0", "Q4_1", "Q5_1", "Q4_K", "Q5_K", "Q6_K"]

OF_SUPER_BLOCKS = ["Q4_K", "Q5_K", "Q6_K"]


@pytest.fixture(params=list(INSTRUCTION_SETS))
def instructions(request: pytest.FixtureRequest) -> str:
    """Every instruction set that this processor has."""
    name: str = request.param
    if name not in here():
        missing = sorted(INSTRUCTION_SETS[name].features - FEATURES)
        pytest.skip(f"this processor has no {', '.join(missing)}")
    return name


def rows_of(count: int, in_features: int, generator: np.random.Generator) -> Floats:
    """Activations of different sizes, among them zeros and a large number."""
    x = generator.normal(size=(count, in_features)).astype(np.float32)
    x *= np.exp(generator.normal(size=(count, 1))).astype(np.float32)
    x[:, :BLOCK] = 0
    x[:, in_features // 2] = 40
    return x


@pytest.mark.parametrize("kind", list(SIZES))
def test_products_are_those_of_a_slow_reference_to_the_last_bit(
    kind: str, instructions: str
) -> None:
    seed = np.random.SeedSequence().entropy
    print("seed", seed)
    generator = np.random.default_rng(seed)
    in_features = 512
    raw, x = random_blocks(kind, 21, in_features, generator), rows_of(3, in_features, generator)
    matrix = QuantisedMatrix.from_file(kind, raw, in_features, instructions=instructions)
    actual = products(matrix, x)
    values = [values_of(row) for row in x]
    for column in (0, 11, 20):
        weights = weights_of(kind, raw[column], in_features)
        expected = [product(kind, weights, each) for each in values]
        assert actual[:, column].tolist() == [float(each) for each in expected]


@pytest.mark.parametrize("kind", ONE_OF_EACH_FORM)
def test_a_row_does_not_depend_on_how_many_are_computed(kind: str, instructions: str) -> None:
    generator = np.random.default_rng(1)
    in_features = 256
    raw = random_blocks(kind, 40, in_features, generator)
    matrix = QuantisedMatrix.from_file(kind, raw, in_features, instructions=instructions)
    x = rows_of(64, in_features, generator)
    alone = np.concatenate([products(matrix, row[None]) for row in x])
    for width in range(1, 65):
        together = products(matrix, x[:width])
        assert np.array_equal(together.view(np.int32), alone[:width].view(np.int32)), width
        others = products(matrix, np.roll(x, width, 0))
        assert np.array_equal(np.roll(others, -width, 0), alone), width


@pytest.mark.parametrize("kind", OF_SUPER_BLOCKS)
@pytest.mark.parametrize("blocks", [8, 24, 32, 48, 56, 72, 104])
def test_scales_of_super_blocks_are_those_that_were_multiplied_out_before(
    kind: str, blocks: int, instructions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many blocks there are beside those whose scales there is room for at a time."""
    seed = np.random.SeedSequence().entropy
    print("seed", seed)
    generator = np.random.default_rng(seed)
    in_features = blocks * BLOCK
    raw = random_blocks(kind, 70, in_features, generator)
    matrix = QuantisedMatrix.from_file(kind, raw, in_features, instructions=instructions)
    assert matrix.layout.has_super_blocks
    in_halves = BLOCK_TYPES[kind].plain
    monkeypatch.setattr("accel.models.cpu.quantised.matrix.layout_for", lambda *_: in_halves)
    other = QuantisedMatrix.from_file(kind, raw, in_features, instructions=instructions)
    assert not other.layout.has_super_blocks
    assert matrix.packed.nbytes < 0.95 * other.packed.nbytes or blocks == 8
    x = rows_of(40, in_features, generator)
    for rows in (1, 3, 8, 9, 17, 40):
        actual, expected = products(matrix, x[:rows]), products(other, x[:rows])
        assert np.array_equal(actual.view(np.int32), expected.view(np.int32)), rows


@pytest.mark.parametrize("kind", OF_SUPER_BLOCKS)
def test_scales_of_super_blocks_times_a_factor_are_rounded_after_it(kind: str) -> None:
    generator, in_features, factor = np.random.default_rng(6), 512, 0.37
    raw, x = random_blocks(kind, 21, in_features, generator), rows_of(3, in_features, generator)
    actual = products(QuantisedMatrix.from_file(kind, raw, in_features, factor=factor), x)
    values = [values_of(row) for row in x]
    for column in (0, 20):
        weights = [
            weight._replace(
                scale=np.float32(np.float16(weight.scale * np.float32(factor))),
                minimum=np.float32(np.float16(weight.minimum * np.float32(factor))),
            )
            for weight in weights_of(kind, raw[column], in_features)
        ]
        expected = [product(kind, weights, each) for each in values]
        assert actual[:, column].tolist() == [float(each) for each in expected]


@pytest.mark.parametrize("kind", ONE_OF_EACH_FORM)
@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("rows", [9, 27])
def test_columns_do_not_depend_on_who_computes_them(kind: str, threads: int, rows: int) -> None:
    generator = np.random.default_rng(2)
    in_features = 256
    raw = random_blocks(kind, 90, in_features, generator)
    matrix = QuantisedMatrix.from_file(kind, raw, in_features)
    x = rows_of(rows, in_features, generator)
    expected = products(matrix, x)
    q8 = empty_q8(rows, in_features)
    quantise_rows(x, rows, q8)
    groups = len(matrix.packed)
    actual = np.full((rows, groups * COLUMNS), np.nan, np.float32)
    ends = [groups * part // threads for part in range(threads + 1)]
    position = matrix.descriptor()

    def compute(part: int) -> None:
        first, last = ends[part], ends[part + 1]
        multiply(position, q8, 0, rows, first, last, actual, first * COLUMNS)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(compute, range(threads)))
    assert np.array_equal(actual[:, :90], expected)
    assert not actual[:, 90:].any()


@pytest.mark.parametrize("packed_for", ["portable", "neon-dotprod", "neon-i8mm"])
@pytest.mark.parametrize("kind", list(SIZES))
def test_rows_are_read_back(kind: str, packed_for: str) -> None:
    """However they are packed, here or for another processor."""
    in_features = 512
    raw = random_blocks(kind, 37, in_features, np.random.default_rng(5))
    matrix = QuantisedMatrix.from_file(kind, raw, in_features, instructions=packed_for)
    position, blocks = matrix.packed.ctypes.data, in_features // BLOCK
    without_product = np.array([0, position, blocks, len(matrix.packed), matrix.layout.number])
    x = np.empty((2, in_features), np.float32)
    for row, index in enumerate((3, 36)):
        write_row(without_product, index, x, row)
        weights = weights_of(kind, raw[index], in_features)
        expected = [weight.scale * np.float32(weight.code) + weight.minimum for weight in weights]
        assert np.allclose(x[row], expected, rtol=1e-6, atol=0)


def test_weights_in_floats_become_eight_bits() -> None:
    generator = np.random.default_rng(3)
    weights = generator.normal(size=(50, 96)).astype(np.float32)
    weights[3, 32:64] = 0
    x = generator.normal(size=(7, 96)).astype(np.float32)
    matrix = QuantisedMatrix.from_numbers(lambda first, last: weights[first:last], *weights.shape)
    actual, exact = products(matrix, x), x @ weights.T
    assert np.abs(actual - exact).max() < 0.04 * exact.std()
    assert np.abs(actual - exact).max() > 0


@pytest.mark.parametrize("kind", list(BLOCK_TYPES))
def test_packed_weights_take_hardly_more_than_in_the_file(kind: str) -> None:
    in_features = 4864
    raw = random_blocks(kind, 896, in_features, np.random.default_rng(4))
    assert QuantisedMatrix.from_file(kind, raw, in_features).packed.nbytes <= 1.1 * raw.nbytes


def test_the_environment_names_an_instruction_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INSTRUCTIONS, raising=False)
    assert chosen() == here()[0]
    monkeypatch.setenv(INSTRUCTIONS, "portable")
    assert chosen() == "portable"
    monkeypatch.setenv(INSTRUCTIONS, "abacus")
    with pytest.raises(InvalidRequest, match=r"this processor has .*portable"):
        chosen()
