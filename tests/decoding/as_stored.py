"""A speculator's network in training, computed with the numbers that drafting has."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from accel.training.speculator import Network


class AsStored(TorchFunctionMode):
    """Products as drafting has them: tables by token in bf16, matrices and what they are multiplied
    with in int8, one scale a row. What a matrix is made of is exact."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._embeddings = network.embeddings
        self._tables = [
            (part.weight, (network.embeddings @ part.weight.T).bfloat16().float())
            for part in (network.token, network.candidate)
        ]
        parts = network.state, network.gate_up, network.down, network.onward
        self._matrices = [part.weight for part in parts]
        self._exact = network.out.weight

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        if function is torch.nn.functional.linear:
            given, weight, *bias = arguments
            if any(weight is matrix for matrix in self._matrices):
                return function(inputs_in_int8(given), weights_in_int8(weight), *bias)
            for made_of, table in self._tables:
                if weight is made_of:
                    return table[(given[:, None] == self._embeddings).all(-1).int().argmax(1)]
        if function is torch.Tensor.matmul and arguments[1] is not self._exact:
            states, head = arguments
            return function(inputs_in_int8(states), weights_in_int8(head.T).T)
        return function(*arguments, **(options or {}))


def inputs_in_int8(rows: torch.Tensor) -> torch.Tensor:
    """The nearest numbers that a row has in int8, rounded as ``int8`` rounds inputs."""
    most = rows.abs().amax(-1, keepdim=True).clamp(min=1e-12)
    return (rows * (127 / most)).round() * (most / 127)


def weights_in_int8(columns: torch.Tensor) -> torch.Tensor:
    """The same of a column of weights."""
    scales = columns.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 127
    return (columns / scales).round() * scales
