"""Values of every type of weights, compared with those of ggml-org's gguf package."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from gguf_writer import stored

from accel.errors import UnsupportedModel
from accel.files.gguf.dequantise import can_be_read, dequantise
from accel.files.gguf.header import BLOCK_TYPES, GgmlType

TYPES = {kind.name: (number, kind) for number, kind in BLOCK_TYPES.items()}
KNOWN = [name for name, (_, kind) in TYPES.items() if can_be_read(kind)]


@pytest.mark.parametrize("name", KNOWN)
def test_every_type_is_read_as_the_gguf_package_reads_it(name: str) -> None:
    number, kind = TYPES[name]
    seed = np.random.SeedSequence().entropy
    print("seed", seed)
    generator = np.random.default_rng(seed)
    data = generator.integers(0, 256, (5, 3 * kind.nbytes), np.uint8)
    with np.errstate(all="ignore"):
        expected = gguf.quants.dequantize(data, gguf.GGMLQuantizationType(number))
    actual = dequantise(data, kind)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(actual, expected.astype(np.float32), rtol=1e-6)


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
