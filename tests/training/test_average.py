"""One model from the ends of several runs."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from accel.training.average import average, mean
from accel.training.errors import TrainingError
from accel.training.trainer import Trainer
from lsp_server.cli.main import main
from tests.training import tiny


def _run(folder: Path, shift: float) -> Path:
    """A run whose weights are those of its seed, moved."""
    run = tiny.run_folder(folder)
    trainer = Trainer(run, tiny.PLAN, tiny.SHAPE, compiled=False)
    for weight in trainer.optimizer.masters.values():
        weight.add_(shift)
    trainer.save()
    return run


def test_the_weights_are_the_mean_and_what_they_are_is_written_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = _run(tmp_path / "a", 0.0), _run(tmp_path / "b", 0.5)
    out = tmp_path / "out"
    assert main(["train", "average", str(first), str(second), "--out", str(out)]) == 0
    model = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)
    masters = torch.load(first / "checkpoint.pt", weights_only=True)["optimizer"]["masters"]
    for name, parameter in model.named_parameters():
        expected = (masters[name].float() + 0.25).to(torch.bfloat16).float()
        assert torch.allclose(parameter, expected, atol=2e-3), name
    data = json.loads((out / "data.json").read_text(encoding="utf-8"))
    assert data["sha256"] == sha256((out / "model.safetensors").read_bytes()).hexdigest()
    assert data["average_after_tokens"] == [0, 0]
    assert (out / "tokenizer.json").exists()
    told = capsys.readouterr().out
    assert 0.5 < float(told.split("held-out packages ")[1].split()[0]) < 20


def test_the_mean_is_reckoned_in_float32() -> None:
    halves = [torch.full((2,), value, dtype=torch.bfloat16) for value in (1.0, 1.0078125)]
    assert mean(halves).tolist() == [1.00390625] * 2


def test_a_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"checkpoint\.pt is missing"):
        average([tmp_path], tmp_path / "out")
