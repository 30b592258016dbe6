"""The check of a GPU runs on a CPU, too, and finds texts that differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from accel.models.cuda.pooled_llama import PooledLlama
from tests.benchmarks import gpu_check
from tests.benchmarks.__main__ import main


def test_all_of_it_runs_on_a_cpu(tmp_path: Path) -> None:
    page = tmp_path / "page.json"
    assert main(["gpu-check", "--device", "cpu", "--tokens", "2", "--json", str(page)]) == 0
    found = json.loads(page.read_text())
    assert set(found["gpu-check"]) == {"tiny fp32", "tiny bf16"}
    for shape in found["gpu-check"].values():
        assert shape["differing"] == 0
        assert min(shape["rows_1"], shape["rows_64"], shape["plain_16"], shape["drafted_1"]) > 0
    assert found["copy_gb_per_s"] > 0


def test_a_forward_whose_numbers_hang_on_company_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = gpu_check.random_model("tiny", "fp32", torch.device("cpu"), 0)
    right = PooledLlama.forward_all

    def disturbed(self: PooledLlama, batches: list, caches: list) -> list:  # type: ignore[type-arg]
        found = list(right(self, batches, caches))
        for logits in found[1:]:
            likeliest = logits._likeliest or []  # type: ignore[attr-defined]
            likeliest[:] = [(token + 1) % 256 for token in likeliest]
        return found

    monkeypatch.setattr(PooledLlama, "forward_all", disturbed)
    assert gpu_check.differing_texts(model, 1, 0) == 15


def test_an_unknown_shape_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu-check", "--device", "cpu", "--shapes", "8B"]) != 0
    assert "give --shapes of tiny, 135M" in capsys.readouterr().err
