"""Dtypes of a small model are compared by its products, before a forward is compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_model import SMALL_MODEL

from accel.models import torch_registry as opening
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.profile_store import ProfileStore
from accel.models.cpu import matmul_timing as products
from accel.models.cpu.safetensors_decoder import read_decoder
from accel.models.cpu.weights import Weights
from accel.models.torch_names import name_of

CPU = torch.device("cpu")


def weights_of(dtype: torch.dtype) -> Weights:
    decoder = read_decoder(SMALL_MODEL, name_of(dtype))
    assert decoder is not None
    return decoder.weights


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_matrix_is_multiplied(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every number of rows, and inputs as wide as the matrix is deep."""
    read: dict[int, int] = {}

    def multiply(
        x: Any, first: int, rows: int, w: Any, blocks: int, depth: int, out: Any, column: int
    ) -> None:
        assert (first, column) == (0, 0)
        assert (blocks, depth) == w.shape[:2]
        assert x.shape[1] == depth * (1 if dtype == torch.float32 else 2)
        assert min(len(x), len(out)) >= rows
        assert out.shape[1] >= 32 * blocks
        read[rows] = read.get(rows, 0) + w.nbytes

    monkeypatch.setattr(products, "multiply", multiply)
    weights = weights_of(dtype)
    costs = products.product_costs(weights, 0.0)
    matrices = weights.qkv, weights.output, weights.gate_up, weights.down, weights.head
    assert read == dict.fromkeys(products.ROWS, sum(matrix.nbytes for matrix in matrices))
    assert costs.rows == list(products.ROWS)


def test_they_are_measured() -> None:
    costs = products.product_costs(weights_of(torch.bfloat16), 0.01)
    assert np.isfinite(costs.seconds).all()
    assert (costs.seconds > 0).all()


@pytest.mark.parametrize("faster", ["fp32", "bf16"])
def test_the_faster_is_taken_and_neither_is_opened(
    faster: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    is_fp32 = faster == "fp32"

    def costs_of(weights: Weights, _budget_s: float) -> ForwardCosts:
        is_faster = (weights.embedding.dtype == np.float32) == is_fp32
        seconds = np.array([[1.0, 2.0, 4.0]]) * (1 if is_faster else 2)
        return ForwardCosts([512], [1, 8, 32], seconds)

    monkeypatch.setattr(opening, "product_costs", costs_of)
    monkeypatch.setattr(opening, "open_model", None)
    settings = opening.choose_settings(SMALL_MODEL, "auto", 1, CPU, ProfileStore("chosen"))
    assert settings.dtype == faster
