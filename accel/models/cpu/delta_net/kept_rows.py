"""The rows of a cache for layers of gated DeltaNet, a state and the rows since, and a store for a
forward's rows until some of them become text."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from accel.draft_tree import TokenArray
from accel.models.cpu.attention import Floats, Stored
from accel.models.cpu.delta_net.row_plan import RowPlan
from accel.models.cpu.delta_net.shape import CHUNK, TAPS, DeltaShape
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.request_table import ForwardInput, RequestTable, _array_at
from accel.native.aligned_memory import zeros

STATE_AT, KEYS_AT, UPDATES_AT, TOTALS_AT, INPUTS_AT, HELD = range(12, 18)
STORED_AT, STORED_FROM, MADE, LAST_AT, BEFORE_AT = range(18, 23)
"""Columns of a request's line after those of ``request_table``: the address of its kept rows, their
number, the row of the store for the rows from ``STORED_FROM`` on, the chunks that end among its
rows, and the addresses of the states after the last of them and the one before, which a prompt
keeps, 0 for none."""


class KeptRows(NamedTuple):
    """Of all layers of gated DeltaNet.

    state: [layers, value_heads, value_dim / 32, key_dim, 32], after the last whole chunk; then of
    the rows since: keys: [layers, CHUNK, key_size]; updates: [layers, CHUNK, value_size]; totals:
    [layers, value_heads, CHUNK], sums of gates; inputs: [layers, 3 + CHUNK, channels], those of
    the convolution, of the three rows before, too, in the dtype of the attention's keys.
    """

    state: Floats
    keys: Floats
    updates: Floats
    totals: Floats
    inputs: Stored

    @classmethod
    def empty(cls, layers: int, shape: DeltaShape, dtype: Any) -> KeptRows:
        """Return those of no text."""
        return cls(
            empty_state(layers, shape),
            zeros((layers, CHUNK, shape.key_size), np.float32),
            zeros((layers, CHUNK, shape.value_size), np.float32),
            zeros((layers, shape.value_heads, CHUNK), np.float32),
            zeros((layers, TAPS + CHUNK, shape.channels), dtype),
        )


def empty_state(layers: int, shape: DeltaShape) -> Floats:
    """Return the state of no text."""
    blocks = shape.value_dim // BLOCK
    return zeros((layers, shape.value_heads, blocks, shape.key_dim, BLOCK), np.float32)


class StoredRows(NamedTuple):
    """Rows of the last forward that may become text.

    inputs: [layers, rows, channels]; keys: [layers, rows, key_size]; updates: [layers, rows,
    value_size]; totals: [layers, rows, value_heads].
    """

    inputs: Stored
    keys: Floats
    updates: Floats
    totals: Floats

    @classmethod
    def of(cls, layers: int, rows: int, shape: DeltaShape, dtype: Any) -> StoredRows:
        """Return buffers for ``rows`` rows."""
        sizes = shape.key_size, shape.value_size, shape.value_heads
        inputs = zeros((layers, rows, shape.channels), dtype)
        return cls(inputs, *(zeros((layers, rows, size), np.float32) for size in sizes))


class HybridInput(NamedTuple):
    """Rows of a hybrid's forward. plan: of all of them; origins: int32 [rows], see ``plan_rows``, a
    request's from its first row on; stored: the store for those that may become text."""

    rows: ForwardInput
    plan: RowPlan
    origins: TokenArray
    stored: StoredRows


@njit(nogil=True, inline="always")
def kept_of(requests: RequestTable, request: int, like: KeptRows) -> KeptRows:
    """Return the kept rows of a request's cache. like: those of another."""
    line = requests[request]
    return KeptRows(
        _array_at(line[STATE_AT], like.state.shape, like.state),
        _array_at(line[KEYS_AT], like.keys.shape, like.keys),
        _array_at(line[UPDATES_AT], like.updates.shape, like.updates),
        _array_at(line[TOTALS_AT], like.totals.shape, like.totals),
        _array_at(line[INPUTS_AT], like.inputs.shape, like.inputs),
    )


@njit(nogil=True, inline="always")
def spare_state(requests: RequestTable, request: int, column: int, like: KeptRows) -> Floats:
    """Return the array for the state after a chunk, by the column with its address."""
    return _array_at(requests[request, column], like.state.shape, like.state)
