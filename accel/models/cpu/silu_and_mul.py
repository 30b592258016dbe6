"""The activation of a SwiGLU layer (Shazeer 2020): silu of the gate times the up projection; and
sigmoids of a gate times what it lets through."""

from __future__ import annotations

import numpy as np

from accel.models.cpu.attention import Floats
from accel.native.numba_cache import compiled
from accel.native.simd import LANES, exp, load, minimum, splat, store


@compiled(borrows=True)
def silu_and_mul(gate_up: Floats, gated: Floats, rows: int, first: int, last: int) -> None:
    """Write silu(gate) * up for the columns from ``first`` to before ``last``.

    gate_up: [rows, >= 2 * intermediate_size], the gate before the up projection; gated: [rows,
    intermediate_size]."""
    intermediate_size = gated.shape[1]
    unity, zero = splat(np.float32(1)), splat(np.float32(0))
    most = splat(np.float32(87))
    for row in range(rows):
        start = row * gate_up.shape[1]
        for i in range(first, last, LANES):
            gate, up = load(gate_up, start + i), load(gate_up, start + intermediate_size + i)
            silu = gate / (unity + exp(minimum(zero - gate, most)))
            store(gated, row * intermediate_size + i, silu * up)


@compiled(borrows=True)
def sigmoid_and_mul(gate: Floats, x: Floats, first: int, last: int) -> None:
    """Multiply numbers of x, by flat index, by the sigmoids of those of the gate at the same
    places."""
    unity, zero, most = splat(np.float32(1)), splat(np.float32(0)), splat(np.float32(87))
    for i in range(first, last, LANES):
        sigmoid = unity / (unity + exp(minimum(zero - load(gate, i), most)))
        store(x, i, load(x, i) * sigmoid)
