"""Adaptive tokens in a module of torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from accel.files.adaptive_tokens import read_adaptive_tokens


def add_adaptive_tokens(module: Any, path: Path) -> tuple[int, ...]:
    """Have a module read the adaptive tokens that lie beside its weights; returns their ids."""
    embedding: Any = module.get_input_embeddings()
    more = read_adaptive_tokens(path, embedding.weight.shape[1])
    if more is None:
        return ()
    weight = torch.cat([embedding.weight.data, torch.from_numpy(more).to(embedding.weight)])
    extended = nn.Embedding.from_pretrained(weight)
    extended.train(module.training)
    module.set_input_embeddings(extended)
    return tuple(range(len(embedding.weight), len(weight)))
