"""Low-rank changes of a model's weights that are trained in its place (LoRA, arXiv 2106.09685):
each projection gets W + B·A; the embeddings of a few tokens may change, too."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from accel.files.gguf.adapter import PROJECTIONS
from tests.benchmarks.training.errors import TrainingError


class LowRank(nn.Module):
    """A weight [out, in] plus B [out, rank] times A [rank, in], in the weight's dtype."""

    def __init__(self, weight: Tensor, rank: int) -> None:
        super().__init__()
        width = weight.shape[1]
        device = weight.device
        self.a = nn.Parameter(torch.randn(rank, width, device=device) / math.sqrt(width))
        self.b = nn.Parameter(torch.zeros(weight.shape[0], rank, device=device))

    def forward(self, weight: Tensor) -> Tensor:
        """The changed weight."""
        return (weight.float() + self.b @ self.a).to(weight.dtype)


class AddedRows(nn.Module):
    """An embedding [vocabulary, width] with something added to the rows of a few tokens."""

    def __init__(self, weight: Tensor, tokens: list[int]) -> None:
        super().__init__()
        self.tokens: Tensor
        self.register_buffer("tokens", torch.tensor(tokens, device=weight.device))
        self.rows = nn.Parameter(torch.zeros(len(tokens), weight.shape[1], device=weight.device))

    def forward(self, weight: Tensor) -> Tensor:
        """The changed embedding."""
        return weight.index_add(0, self.tokens, self.rows.to(weight.dtype))


class LowRankModel:
    """A frozen causal language model with low-rank changes, which alone are trained."""

    def __init__(self, module: nn.Module, rank: int, tokens: list[int], seed: int) -> None:
        """``tokens``: whose embeddings are trained, too. Raises TrainingError for a model that is
        not built like Llama."""
        self.module = module.requires_grad_(False)
        base: Any = module
        torch.manual_seed(seed)
        try:
            self.changes = {
                kind: [_changed(layer.get_submodule(name), rank) for layer in base.model.layers]
                for kind, name in PROJECTIONS.items()
            }
            embedding = base.model.embed_tokens
        except AttributeError as error:
            raise TrainingError(
                f"the base is not built like Llama ({error}); give another one"
            ) from error
        self.added_rows: AddedRows | None = None
        if tokens:
            self.added_rows = AddedRows(embedding.weight, tokens)
            parametrize.register_parametrization(embedding, "weight", self.added_rows)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What is trained."""
        changes = [each for layers in self.changes.values() for each in layers]
        rows = [] if self.added_rows is None else [self.added_rows.rows]
        return [*(one.a for one in changes), *(one.b for one in changes), *rows]

    def loss(self, tokens: Tensor, weights: Tensor) -> Tensor:
        """The weighted mean of the cross entropy; int64 and float32 [rows, tokens]. A weight is
        that of predicting its token."""
        on_gpu = tokens.device.type == "cuda"
        with torch.autocast(tokens.device.type, torch.bfloat16, enabled=on_gpu):
            logits = self.module(input_ids=tokens).logits
        losses = nn.functional.cross_entropy(
            logits[:, :-1].float().flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
        )
        counted = weights[:, 1:].flatten()
        return (losses * counted).sum() / counted.sum().clamp(min=1e-6)


def _changed(linear: Any, rank: int) -> LowRank:
    change = LowRank(linear.weight, rank)
    parametrize.register_parametrization(linear, "weight", change)
    return change
