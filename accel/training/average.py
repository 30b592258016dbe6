"""`redraft train average`: one model from the ends of several runs, each continuing the one before.

Weights of one run at its end and of the run that continued it from a higher rate lie in one basin:
their mean is better than either (Izmailov et al. 2018, stochastic weight averaging; Wortsman et
al. 2022, model soups).
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from accel.training.errors import TrainingError
from accel.training.trainer import TrainedShape, Trainer, TrainingPlan

_COPIED = ("tokenizer.json", "tokenizer_config.json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `redraft train average`."""
    parser.add_argument("runs", type=Path, nargs="+", help="folders of runs, the newest last")
    parser.add_argument("--out", type=Path, required=True, help="folder for the model")


def run(args: argparse.Namespace) -> int:
    """Run `redraft train average`; gives the exit status."""
    held_out = average(args.runs, args.out)
    print(f"model written to {args.out}; held-out packages {held_out:.3f} bits per byte")
    return 0


def average(runs: Sequence[Path], out: Path) -> float:
    """Write the model with the mean of the float32 weights of runs' checkpoints; returns its bits
    per byte on the packages that the newest run held out, measured as that run measured itself.

    Raises TrainingError where a checkpoint is missing or has another shape.
    """
    states = [_checkpoint(folder) for folder in runs]
    if any(state["shape"] != states[0]["shape"] for state in states):
        raise TrainingError("the runs have different shapes; give runs that continue one another")
    newest, shape = runs[-1], TrainedShape(**states[0]["shape"])
    trainer = Trainer(newest, TrainingPlan(**states[-1]["plan"]), shape, compiled=False)
    with torch.no_grad():
        for name, parameter in trainer.model.named_parameters():
            parameter.copy_(mean([state["optimizer"]["masters"][name] for state in states]))
    trainer.model.to(torch.bfloat16).save_pretrained(out)
    for name in _COPIED:
        shutil.copy(newest / name, out / name)
    _write_data(newest, out, [state["position"]["tokens"] for state in states])
    return trainer.held_out_bits_per_byte()


def mean(weights: Sequence[Tensor]) -> Tensor:
    """The mean of tensors of one shape, in float32."""
    return torch.stack([weight.float() for weight in weights]).mean(0)


def _checkpoint(folder: Path) -> dict[str, Any]:
    path = folder / "checkpoint.pt"
    if not path.exists():
        raise TrainingError(f"{path} is missing: give the folder of a run of `redraft train base`")
    state: dict[str, Any] = torch.load(path, weights_only=True)
    return state


def _write_data(newest: Path, out: Path, tokens: list[int]) -> None:
    """data.json of the newest run, with the sum of the new weights and what they are a mean of."""
    source = newest / "data.json"
    data = json.loads(source.read_text(encoding="utf-8")) if source.exists() else {}
    data["sha256"] = sha256((out / "model.safetensors").read_bytes()).hexdigest()
    data["average_after_tokens"] = tokens
    (out / "data.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
