"""Sizes of gated DeltaNet, and the buffers of a thread that computes it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.files.hybrid import Hybrid
from accel.models.cpu.attention import Floats
from accel.models.cpu.matmul import BLOCK
from accel.native.aligned_memory import empty

CHUNK = BLOCK
"""Tokens from one state to the next. Within a chunk rows are kept instead of states."""

TAPS = 3
"""Inputs before its own that a row's convolution reads."""

RUN = 64
"""Rows whose products with a state are computed at once."""


class DeltaShape(NamedTuple):
    """Heads of keys and of values, their sizes, and epsilon of norms.

    A head of keys serves several heads of values: of its ``repeat``-th the number is head *
    ``head_stride`` + repeat * ``repeat_stride``. Folders have those of a head beside each other,
    GGUF files have them tiled.
    """

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    head_stride: int
    repeat_stride: int
    eps: float

    @property
    def key_size(self) -> int:
        """Keys of a row, of all heads."""
        return self.key_heads * self.key_dim

    @property
    def value_size(self) -> int:
        """Values of a row, of all heads."""
        return self.value_heads * self.value_dim

    @property
    def channels(self) -> int:
        """Of the convolution: queries, keys and values."""
        return 2 * self.key_size + self.value_size


def delta_shape(hybrid: Hybrid | None, eps: float) -> DeltaShape | None:
    """That of a hybrid's file."""
    if hybrid is None:
        return None
    share = hybrid.value_heads // hybrid.key_heads
    strides = (1, hybrid.key_heads) if hybrid.is_tiled else (share, 1)
    heads = hybrid.key_heads, hybrid.value_heads
    return DeltaShape(*heads, hybrid.key_dim, hybrid.value_dim, *strides, eps)


class DeltaBuffers(NamedTuple):
    """Buffers of a thread for a head of some rows.

    inputs: [3 + rows, head], of the convolution; keys_queries: [2 * rows, key_dim], in turns;
    key_scores, query_scores: [rows, CHUNK], products with the keys of the rows above in the chunk;
    updates, outputs: [rows, value_dim]; totals: [rows], sums of gates since the chunk began; betas:
    [rows]; products: [2 * RUN, value_dim], with a state; weights: [3, CHUNK]; path: int64 [CHUNK];
    states: [made, value_dim / 32, key_dim, 32], those that chunks of these rows begin with;
    chunk_keys: [key_dim, CHUNK]; chunk_updates: [value_dim / 32, CHUNK, 32]; added: [key_dim,
    value_dim].
    """

    inputs: Floats
    keys_queries: Floats
    key_scores: Floats
    query_scores: Floats
    updates: Floats
    outputs: Floats
    totals: Floats
    betas: Floats
    products: Floats
    weights: Floats
    path: NDArray[np.int64]
    states: Floats
    chunk_keys: Floats
    chunk_updates: Floats
    added: Floats

    @classmethod
    def of(cls, rows: int, chunks: int, shape: DeltaShape) -> DeltaBuffers:
        """Return buffers for ``rows`` rows, in which ``chunks`` chunks end."""
        key_dim, value_dim = shape.key_dim, shape.value_dim
        blocks = value_dim // BLOCK

        def floats(*size: int) -> Floats:
            return empty(size, np.float32)

        return cls(
            inputs=floats(TAPS + rows, max(key_dim, value_dim)),
            keys_queries=floats(2 * rows, key_dim),
            key_scores=floats(rows, CHUNK),
            query_scores=floats(rows, CHUNK),
            updates=floats(rows, value_dim),
            outputs=floats(rows, value_dim),
            totals=floats(rows),
            betas=floats(rows),
            products=floats(2 * RUN, value_dim),
            weights=floats(3, CHUNK),
            path=np.empty(CHUNK, np.int64),
            states=floats(max(chunks, 1), blocks, key_dim, BLOCK),
            chunk_keys=floats(key_dim, CHUNK),
            chunk_updates=floats(blocks, CHUNK, BLOCK),
            added=floats(key_dim, value_dim),
        )
