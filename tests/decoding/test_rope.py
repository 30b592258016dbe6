"""Tables of positions: one for every way to open a model, right to the last bit."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import save

from accel.files.folder_architecture import folder_architecture
from accel.files.rope import rope_frequencies, rope_table
from accel.models.hf_loading import load_module

CPU = torch.device("cpu")
WIDE = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 32}
LIBRARIES_DIFFER = 2.5e-7
"""Two units of the last place, relatively: so far powers, cosines and sines differ."""
SHAPES = [(1e4, 32), (1e4, 64), (1e4, 128), (1e5, 64), (1e6, 128), (5e5, 64), (1e4, 80),
          (150.0, 96), (2.0, 2), (1e7, 256), (8e6, 128)]  # fmt: skip


def slow_frequency(theta: float, pair: int, head_dim: int) -> np.float32:
    """By Python's numbers of 64 bits, rounded step by step."""
    power = math.pow(theta, float(np.float32(2 * pair) / np.float32(head_dim)))
    return np.float32(1) / np.float32(power)


@pytest.mark.parametrize(("theta", "head_dim"), SHAPES)
def test_frequencies_are_those_of_the_paper(theta: float, head_dim: int) -> None:
    actual = rope_frequencies(theta, head_dim)
    assert actual.dtype == np.float32
    slow = [slow_frequency(theta, pair, head_dim) for pair in range(head_dim // 2)]
    assert np.allclose(actual, slow, rtol=LIBRARIES_DIFFER, atol=0)
    paper = [theta ** (-2 * pair / head_dim) for pair in range(head_dim // 2)]
    assert np.allclose(actual, paper, rtol=2e-6, atol=0)


@pytest.mark.parametrize(("theta", "head_dim"), SHAPES)
@pytest.mark.parametrize("positions", [1, 300, 9000])
def test_a_table_holds_cosines_and_sines(theta: float, head_dim: int, positions: int) -> None:
    frequencies = rope_frequencies(theta, head_dim)
    table = rope_table(frequencies, 1.0, positions)
    assert table.shape == (positions, 2, head_dim // 2)
    assert table.flags.c_contiguous
    rng = random.Random(positions)
    for _ in range(200):
        at, pair = rng.randrange(positions), rng.randrange(head_dim // 2)
        angle = float(np.float32(at) * frequencies[pair])
        assert abs(table[at, 0, pair] - math.cos(angle)) <= 6e-8
        assert abs(table[at, 1, pair] - math.sin(angle)) <= 6e-8


def test_a_longer_table_begins_as_a_shorter_one() -> None:
    frequencies = rope_frequencies(1e4, 64)
    long = rope_table(frequencies, 1.5, 10_000)
    for positions in (1, 4095, 4096, 4097, 8192):
        assert np.array_equal(rope_table(frequencies, 1.5, positions), long[:positions])
    assert np.allclose(long, rope_table(frequencies, 1.0, 10_000) * np.float32(1.5))


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "llama-scaled"])
def test_a_folder_has_the_table_of_transformers(kind: str, tmp_path: Path) -> None:
    folder = save(tmp_path, kind, **WIDE | {"attention_bias": False})
    base: Any = load_module(folder, torch.float32, CPU, "eager").model
    own = folder_architecture(folder)
    assert own is not None
    table = torch.from_numpy(rope_table(own.frequencies, 1.0, 500))
    theirs = base.rotary_emb(torch.zeros(1), torch.arange(500)[None])
    for ours, their in zip(table.unbind(1), theirs, strict=True):
        half = their[0, :, : ours.shape[1]]
        assert torch.allclose(ours, half, rtol=0, atol=500 * LIBRARIES_DIFFER)
