"""Adapters on disk: low-rank changes in eight bits, in the layout of
``accel.files.gguf.adapter``."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from operating_system.files import replace_file
from tests.benchmarks.training.low_rank import LowRankModel


def save_adapter(model: LowRankModel, file: Path, described: dict[str, str]) -> None:
    """Write an adapter, whole or not at all. ``described`` goes along as the file's metadata."""
    tensors: dict[str, Tensor] = {}
    for kind, layers in model.changes.items():
        matrices: dict[str, list[Tensor]] = {
            "A": [one.a.detach() for one in layers],
            "B": [one.b.detach() for one in layers],
        }
        for name, of_layers in matrices.items():
            numbers, scales = quantised(torch.stack(of_layers).float().cpu())
            tensors[f"{kind}.{name}"] = numbers
            tensors[f"{kind}.{name}.scale"] = scales
    if model.added_rows is not None:
        tensors["fim_embeddings"] = model.added_rows.rows.detach().float().cpu().contiguous()
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.part")
    save_file(tensors, unfinished, metadata=described)
    replace_file(unfinished, file)


def quantised(values: Tensor) -> tuple[Tensor, Tensor]:
    """int8 with a float16 scale for each row of [..., rows, columns]; rows of nothing have the
    scale 0."""
    scales = (values.abs().amax(-1) / 127).half()
    steps = scales.float()[..., None]
    numbers = torch.where(steps > 0, values / steps, torch.zeros_like(values))
    return numbers.round().clamp(-127, 127).to(torch.int8), scales
