"""Logits that torch holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accel.models.array_logits import ArrayLogits


class TorchLogits:
    """Logits [rows, vocabulary] on any device, in any format. See ``base.Logits``."""

    def __init__(self, tensor: Tensor, likeliest: Sequence[int] | None = None) -> None:
        """likeliest: the token of every row, where that is known."""
        self._tensor, self._likeliest = tensor, likeliest
        self._numbers: NDArray[np.float32] | None = None

    def argmax(self) -> Sequence[int]:
        """On the CPU NumPy's argmax is many times as fast as torch's."""
        if self._likeliest is not None:
            return self._likeliest
        if self._tensor.device.type == "cpu":
            return ArrayLogits(self._all()).argmax()
        with torch.inference_mode():
            found: list[int] = self._tensor.argmax(-1).tolist()
        return found

    def row(self, index: int) -> NDArray[np.float32]:
        """All rows come from the device at once."""
        row: NDArray[np.float32] = self._all()[index]
        return row

    def _all(self) -> NDArray[np.float32]:
        if self._numbers is None:
            self._numbers = self._tensor.float().cpu().numpy()
        return self._numbers
