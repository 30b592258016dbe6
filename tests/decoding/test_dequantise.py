"""Every type of weights against blocks written out by hand, and against the gguf package."""

from __future__ import annotations

import numpy as np
import pytest
from gguf_writer import stored
from numpy.typing import NDArray

from accel.errors import UnsupportedModel
from accel.files.gguf.block_types import BLOCK_TYPES, GgmlType
from accel.files.gguf.dequantise import can_be_read, dequantise

TYPES = {kind.name: (number, kind) for number, kind in BLOCK_TYPES.items()}
KNOWN = [name for name, (_, kind) in TYPES.items() if can_be_read(kind)]
HALF = b"\x00\x38"
"""0.5 as f16."""
TWO = b"\x00\x40"
"""2 as f16."""


def values(name: str, block: bytes) -> NDArray[np.float32]:
    kind = TYPES[name][1]
    assert len(block) == kind.nbytes
    return dequantise(np.frombuffer(block, np.uint8)[None], kind)[0]


def test_blocks_of_32_values_with_a_scale() -> None:
    q = list(range(-16, 16))
    found = values("Q8_0", HALF + np.array(q, np.int8).tobytes())
    assert found.tolist() == [0.5 * each for each in q]
    nibbles = bytes(low | high << 4 for low, high in zip(range(16), range(15, -1, -1), strict=True))
    counted = [*range(16), *range(15, -1, -1)]
    assert values("Q4_0", HALF + nibbles).tolist() == [0.5 * (n - 8) for n in counted]
    assert values("Q4_1", HALF + TWO + nibbles).tolist() == [0.5 * n + 2 for n in counted]
    # The fifth bit is set for the first value and for the last.
    fifth = b"\x01\x00\x00\x80"
    counted[0], counted[-1] = 16, 16
    assert values("Q5_0", HALF + fifth + nibbles).tolist() == [0.5 * (n - 16) for n in counted]
    assert values("Q5_1", HALF + TWO + fifth + nibbles).tolist() == [0.5 * n + 2 for n in counted]


def six_bits(scales: list[int], least: list[int]) -> bytes:
    """The twelve bytes that hold eight scales and eight least values."""
    first = [scales[j] | scales[j + 4] >> 4 << 6 for j in range(4)]
    second = [least[j] | least[j + 4] >> 4 << 6 for j in range(4)]
    third = [scales[j + 4] & 15 | (least[j + 4] & 15) << 4 for j in range(4)]
    return bytes(first + second + third)


def test_blocks_of_256_values_with_scales_and_least_values_of_six_bits() -> None:
    generator = np.random.default_rng(3)
    scales, least = generator.integers(0, 64, (2, 8)).tolist()
    q = generator.integers(0, 16, (8, 32))
    expected = [0.5 * scales[part] * int(n) - 2 * least[part] for part in range(8) for n in q[part]]
    nibbles = b"".join(bytes((q[n] | q[n + 1] << 4).tolist()) for n in range(0, 8, 2))
    head = HALF + TWO + six_bits(scales, least)
    assert values("Q4_K", head + nibbles).tolist() == expected
    # The fifth bit of part n is bit n of the byte of its place.
    high = bytes([1 << 5] + [0] * 30 + [1])
    expected[5 * 32] += 0.5 * scales[5] * 16
    expected[31] += 0.5 * scales[0] * 16
    assert values("Q5_K", head + high + nibbles).tolist() == expected


def test_six_bit_values_with_sixteen_scales() -> None:
    generator = np.random.default_rng(4)
    scales = generator.integers(-128, 128, 16)
    q = generator.integers(0, 64, 256)
    low, high = bytearray(128), bytearray(64)
    for place, n in enumerate(q.tolist()):
        half, within = divmod(place, 128)
        quarter, column = divmod(within, 32)
        low[64 * half + 32 * (quarter % 2) + column] |= (n & 15) << 4 * (quarter // 2)
        high[32 * half + column] |= (n >> 4) << 2 * quarter
    block = bytes(low) + bytes(high) + scales.astype(np.int8).tobytes() + HALF
    expected = [0.5 * int(scales[place // 16]) * (int(n) - 32) for place, n in enumerate(q)]
    assert values("Q6_K", block).tolist() == expected


@pytest.mark.parametrize("name", KNOWN)
def test_every_type_is_read_as_the_gguf_package_reads_it(name: str) -> None:
    gguf = pytest.importorskip("gguf", reason="the gguf package is not installed")
    number, kind = TYPES[name]
    seed = np.random.SeedSequence().entropy
    print("seed", seed)
    generator = np.random.default_rng(seed)
    data = generator.integers(0, 256, (5, 3 * kind.nbytes), np.uint8)
    with np.errstate(all="ignore"):
        expected = gguf.quants.dequantize(data, gguf.GGMLQuantizationType(number))
    found = dequantise(data, kind)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, expected.astype(np.float32), rtol=1e-6)


@pytest.mark.parametrize("name", ["F32", "F16", "BF16", "Q8_0", "Q4_0"])
def test_what_is_written_is_read_again(name: str) -> None:
    written = np.random.default_rng(5).standard_normal((4, 64)).astype(np.float32)
    kind = TYPES[name][1]
    data = np.frombuffer(stored(written, name).data, np.uint8).reshape(4, -1)
    worst = float(np.abs(dequantise(data, kind) - written).max())
    assert worst <= {"F32": 0, "F16": 2e-3, "BF16": 3e-2, "Q8_0": 3e-2, "Q4_0": 0.5}[name]


def test_other_types_are_refused() -> None:
    kind = GgmlType("IQ1_S", 256, 50)
    with pytest.raises(UnsupportedModel, match=r"IQ1_S are not known; take a file in"):
        dequantise(np.zeros((1, 50), np.uint8), kind)
