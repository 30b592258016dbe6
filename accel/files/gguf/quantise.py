"""Values in the blocks of a GGUF file: the same bytes on every machine.

Source: ``quantize_row_q8_0_ref`` of ggml, with a division where that multiplies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_VALUES = 32
_MOST = 127


def q8_0(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return rows of Q8_0 blocks uint8 [rows, row_bytes] of float32 [rows, columns]; 32 divides
    columns. Each block has d = max|x| / 127, as f16, and q = x / d with the float32 d, halves
    rounded away from zero."""
    rows, columns = values.shape
    assert columns % _VALUES == 0, columns
    blocks = values.reshape(-1, _VALUES)
    d = np.abs(blocks).max(1, keepdims=True) / np.float32(_MOST)
    scaled = np.divide(blocks, d, out=np.zeros_like(blocks), where=d > 0)
    codes = np.trunc(scaled)
    # The fraction is exact, and so is its double: 0.49999997 stays below the half.
    codes += np.trunc(2 * (scaled - codes))
    packed = np.empty((len(blocks), 2 + _VALUES), np.uint8)
    packed[:, :2] = d.astype("<f2").view(np.uint8)
    packed[:, 2:] = codes.astype(np.int8).view(np.uint8)
    return packed.reshape(rows, -1)
