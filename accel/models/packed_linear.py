"""Matrix products for few rows: weights in the layout that the CPU's kernels need."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear


class Linear:
    """``x @ weight.T + bias`` for x [rows, in].

    On CPUs with oneDNN the weight is reordered once. One fp32 row alone is slower so while the
    weight is in cache, and faster in a whole model, whose weights are not.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._bias = bias
        packed = _packed(weight)
        self._weight = weight if packed is None else packed
        self._is_packed = packed is not None

    def __call__(self, x: Tensor) -> Tensor:
        if not self._is_packed:
            return linear(x, self._weight, self._bias)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            x, self._weight, self._bias, "none", [], ""
        )
        return product


def _packed(weight: Tensor) -> Tensor | None:
    """The weight in oneDNN's own layout; None where torch has no such kernel."""
    usable = weight.device.type == "cpu" and torch.backends.mkldnn.is_available()
    if not usable or weight.dtype not in (torch.float32, torch.bfloat16):
        return None
    try:
        packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight)
        torch.ops.mkldnn._linear_pointwise(
            weight.new_zeros(1, weight.shape[1]), packed, None, "none", [], ""
        )
    except (RuntimeError, AttributeError):
        return None
    return packed
