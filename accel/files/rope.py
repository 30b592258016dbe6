"""Rotary position embeddings (RoFormer, Su et al. 2021, section 3.2.2): tables of all positions.

They are the same on every processor and for every kind of model: powers, cosines and sines are
computed in 64 bits and rounded, since libraries differ in the last bit of 32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 4096
"""Positions that are computed at once in 64 bits."""


def rope_frequencies(theta: float, head_dim: int) -> NDArray[np.float32]:
    """Radians a position for each pair of a head's ``head_dim`` numbers: theta^(-2i / head_dim),
    rounded where transformers rounds. float32 [head_dim / 2]."""
    exponents = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    powers = np.float64(theta) ** exponents.astype(np.float64)
    return np.float32(1) / powers.astype(np.float32)


def rope_table(
    frequencies: NDArray[np.float32], scale: float, positions: int
) -> NDArray[np.float32]:
    """Cosines and sines of the first positions, float32 [positions, 2, head_dim / 2]. frequencies:
    radians a position, float32 [head_dim / 2]; scale: what both are multiplied by."""
    table = np.empty((positions, 2, len(frequencies)), np.float32)
    for first in range(0, positions, _AT_ONCE):
        some = np.arange(first, min(first + _AT_ONCE, positions), dtype=np.float32)
        angles = np.outer(some, frequencies).astype(np.float64)
        rows = table[first : first + len(some)]
        rows[:, 0], rows[:, 1] = np.cos(angles), np.sin(angles)
    if scale != 1:
        table *= np.float32(scale)
    return table
