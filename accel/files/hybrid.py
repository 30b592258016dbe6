"""Hybrids of attention and gated DeltaNet as files have them: sizes, and orders of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

KERNEL = 4
"""Width of the convolution that our forward has."""
ROTARY_SHARE = 0.25
"""Of a head of attention, what RoPE turns where a file does not say (transformers' Qwen3.5)."""


@dataclass(frozen=True, slots=True)
class Hybrid:
    """The layers of a hybrid such as Qwen3.5 beside attention and feed-forward.

    layers: the numbers of those with gated DeltaNet; rotary_dim: the number of a head's values that
    RoPE turns; is_tiled: value heads of one key head are not beside each other.
    """

    layers: tuple[int, ...]
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    rotary_dim: int
    is_tiled: bool

    @property
    def channels(self) -> int:
        """Of the convolution: queries, keys and values."""
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim

    @property
    def value_size(self) -> int:
        """Values of a row."""
        return self.value_heads * self.value_dim


def turned_order(head_dim: int, rotary_dim: int) -> NDArray[np.int64]:
    """Return the order of a head's values with which RoPE turns the whole head, most of it by
    nothing (``turned_frequencies``): its pairs are a half apart, those of the file a half of the
    turned part. int64 [head_dim]."""
    half, turned = head_dim // 2, rotary_dim // 2
    still = np.arange(rotary_dim, head_dim)
    first = np.concatenate([np.arange(turned), still[: half - turned]])
    return np.concatenate([first, np.arange(turned, rotary_dim), still[half - turned :]])


def turned_frequencies(frequencies: NDArray[np.float32], head_dim: int) -> NDArray[np.float32]:
    """Frequencies of the pairs of a whole head, zero for those that are not turned."""
    return np.pad(frequencies, (0, head_dim // 2 - len(frequencies)))


def head_rows(heads: int, head_dim: int, rotary_dim: int) -> NDArray[np.int64]:
    """Return the order of the rows of keys, head by head."""
    order = turned_order(head_dim, rotary_dim)
    return (np.arange(heads)[:, None] * head_dim + order).reshape(-1)


def gated_query_rows(
    heads: int, head_dim: int, rotary_dim: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows of the queries, and of the gate of the output, in a matrix that has both of each
    head, one after the other."""
    first = 2 * head_dim * np.arange(heads)[:, None]
    order = turned_order(head_dim, rotary_dim)
    gates = first + head_dim + np.arange(head_dim)
    return (first + order).reshape(-1), gates.reshape(-1)
