"""Rotary position embeddings (RoFormer, Su et al. 2021, section 3.2.2): tables of all positions.

They are the same on every processor and for every kind of model: powers, cosines and sines are
computed in 64 bits and rounded, since libraries differ in the last bit of 32.
"""

from __future__ import annotations

import math
from typing import Any

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


def scaled_frequencies(config: dict[str, Any], head_dim: int) -> NDArray[np.float32]:
    """Return the frequencies of a folder's ``config``, float32 [head_dim / 2]: plain, scaled
    linearly (Chen et al. 2023) or as Llama 3.1 does. Raises ValueError for other scalings."""
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = scaling.get("rope_theta", config.get("rope_theta", 10_000.0))
    if "partial_rotary_factor" in scaling or "partial_rotary_factor" in config:
        raise ValueError("a part of each head is turned")
    plain = rope_frequencies(theta, head_dim)
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return plain
    if kind == "linear":
        return plain / np.float32(scaling["factor"])
    if kind != "llama3":
        raise ValueError(f"positions are scaled by {kind}")
    return _by_wavelength(plain, scaling)


def _by_wavelength(plain: NDArray[np.float32], scaling: dict[str, Any]) -> NDArray[np.float32]:
    """Llama 3.1's frequencies: those that turn rarely in the original context are divided by
    ``factor``, those that turn often stay, with a ramp in between. (Source:
    ``_compute_llama3_parameters`` in transformers.)"""
    factor, original = scaling["factor"], scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = original * plain.astype(np.float64) / (2 * math.pi)
    share = ((turns - low) / (high - low)).clip(0, 1)
    frequencies: NDArray[np.float32] = (plain * share + plain / factor * (1 - share)).astype(
        np.float32
    )
    return frequencies


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
