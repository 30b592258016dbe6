"""Muon for the matrices of the body, AdamW for the rest, on fp32 copies of the weights."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import torch
from torch import Tensor, nn

_MATRICES_AT_ONCE = 6
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalised(matrices: Tensor, steps: int = 5) -> Tensor:
    """Newton-Schulz: matrices [count, rows, columns], rows >= columns, to near orthogonal ones.

    The quintic iteration of Muon (Jordan 2024), in bfloat16.
    """
    a, b, c = _COEFFICIENTS
    x = matrices.to(torch.bfloat16)
    x = x / (x.float().norm(dim=(1, 2), keepdim=True) + 1e-7).to(x.dtype)
    for _ in range(steps):
        gram = torch.bmm(x.transpose(1, 2), x)
        x = a * x + torch.bmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c))
    return x.float()


class MatchedMuon:
    """Updates a model whose parameters are low precision from fp32 master weights.

    Matrices of the body take Muon steps scaled to the size of AdamW's (0.2 * sqrt(rows)), so one
    learning rate serves both; embeddings and norms take AdamW steps.
    """

    def __init__(self, model: nn.Module, weight_decay: float = 0.1, momentum: float = 0.95) -> None:
        self._decay, self._momentum = weight_decay, momentum
        self._parameters = dict(model.named_parameters())
        self.masters = {n: p.detach().float().clone() for n, p in self._parameters.items()}
        self._groups: dict[tuple[int, int], list[str]] = {}
        rest: list[Tensor] = []
        for name, master in self.masters.items():
            if master.ndim == 2 and "embed" not in name and "lm_head" not in name:
                shape = (max(master.shape), min(master.shape))
                self._groups.setdefault(shape, []).append(name)
            else:
                rest.append(master)
        self._velocity = {
            name: torch.zeros_like(self.masters[name])
            for names in self._groups.values()
            for name in names
        }
        self._adam_names = [n for n in self.masters if n not in self._velocity]
        self._adam = torch.optim.AdamW(rest, lr=1.0, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0)

    @torch.no_grad()
    def step(
        self, gradients: dict[str, Tensor], learning_rate: float, pool: Executor | None = None
    ) -> None:
        """One update from float32 gradients by parameter name; matrices in parallel on `pool`."""
        parts = [
            (shape, names[start : start + _MATRICES_AT_ONCE])
            for shape, names in self._groups.items()
            for start in range(0, len(names), _MATRICES_AT_ONCE)
        ]

        def update(part: tuple[tuple[int, int], list[str]]) -> None:
            self._muon(*part, gradients, learning_rate)

        for _ in pool.map(update, parts) if pool else map(update, parts):
            pass
        for name in self._adam_names:
            self.masters[name].grad = gradients[name]
        self._adam.param_groups[0]["lr"] = learning_rate
        self._adam.step()
        for name, parameter in self._parameters.items():
            parameter.copy_(self.masters[name])

    @torch.no_grad()
    def _muon(
        self,
        shape: tuple[int, int],
        names: list[str],
        gradients: dict[str, Tensor],
        learning_rate: float,
    ) -> None:
        stacked = []
        for name in names:
            velocity = self._velocity[name]
            velocity.mul_(self._momentum).add_(gradients[name])
            ahead = gradients[name].add(velocity, alpha=self._momentum)
            stacked.append(ahead if ahead.shape == shape else ahead.T)
        scale = learning_rate * 0.2 * shape[0] ** 0.5
        for name, update in zip(names, orthogonalised(torch.stack(stacked)), strict=True):
            master = self.masters[name]
            master.mul_(1.0 - learning_rate * self._decay)
            master.sub_(update if update.shape == master.shape else update.T, alpha=scale)

    def state_dict(self) -> dict[str, Any]:
        """Master weights and moments."""
        return {
            "masters": self.masters,
            "velocity": self._velocity,
            "adam": self._adam.state_dict(),
        }

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave, the model's parameters too."""
        for name, master in self.masters.items():
            master.copy_(state["masters"][name])
            self._parameters[name].copy_(master)
        for name, velocity in self._velocity.items():
            velocity.copy_(state["velocity"][name])
        self._adam.load_state_dict(state["adam"])
