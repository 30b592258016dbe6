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

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._numbers: NDArray[np.float32] | None = None

    def argmax(self) -> Sequence[int]:
        # On the CPU NumPy's argmax is many times as fast as torch's.
        if self._tensor.device.type == "cpu":
            return ArrayLogits(self._all()).argmax()
        with torch.inference_mode():
            tokens: list[int] = self._tensor.argmax(-1).tolist()
        return tokens

    def row(self, index: int) -> NDArray[np.float32]:
        # All rows come from the device at once.
        row: NDArray[np.float32] = self._all()[index]
        return row

    def _all(self) -> NDArray[np.float32]:
        if self._numbers is None:
            self._numbers = self._tensor.float().cpu().numpy()
        return self._numbers
