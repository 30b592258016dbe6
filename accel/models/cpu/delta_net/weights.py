"""The weights of gated DeltaNet, activations of its layers, and the state of a thread that computes
them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu.attention import Floats, Shape
from accel.models.cpu.delta_net.kept_rows import KeptRows
from accel.models.cpu.delta_net.shape import DeltaBuffers, DeltaShape
from accel.models.cpu.layer_matrices import Matrices, blocks_of, is_quantised
from accel.models.cpu.matmul import BLOCK, Packed
from accel.models.cpu.quantised.activations import Q8_BYTES, Q8Blocks
from accel.models.cpu.quantised.packed_layouts import BLOCK as QUANTISED_BLOCK
from accel.models.cpu.thread_state import ThreadState
from accel.native.aligned_memory import empty
from accel.native.numba_cache import State, compiled


class DeltaWeights(NamedTuple):
    """The weights of a hybrid beside ``Weights``, whose attention is that of its layers of
    attention.

    kinds: int64 [layers], the number of a layer among those of its kind: at least zero for
    attention, -1 - number for gated DeltaNet. output_gate: matrices of the layers of attention. Of
    the others, mixed: queries, keys, values and z; out; betas_gates: packed, two parts of as many
    whole blocks; kernel: [layers, 4, channels]; rate: [layers, value_heads], -exp(A_log); bias:
    [layers, value_heads]; norm: [layers, value_dim].
    """

    kinds: NDArray[np.int64]
    output_gate: Matrices
    mixed: Matrices
    out: Matrices
    betas_gates: Packed
    kernel: Floats
    rate: Floats
    bias: Floats
    norm: Floats


class DeltaScratch(NamedTuple):
    """Activations of some rows. mixed: [rows, channels + value_size]; betas_gates: [rows, ..]; out:
    [rows, value_size], and quantised; output_gate: [rows, heads * head_dim]."""

    mixed: Floats
    betas_gates: Floats
    out: Floats
    out_q8: Q8Blocks
    output_gate: Floats

    @classmethod
    def allocate(
        cls, rows: int, weights: DeltaWeights, shape: DeltaShape, attention: Shape
    ) -> DeltaScratch:
        """Return buffers for ``rows`` rows."""
        inputs = shape.value_size if is_quantised(weights.out) else 0
        return cls(
            mixed=empty((rows, blocks_of(weights.mixed) * BLOCK), np.float32),
            betas_gates=empty((rows, weights.betas_gates.shape[1] * BLOCK), np.float32),
            out=empty((rows, shape.value_size), np.float32),
            out_q8=empty((rows, inputs // QUANTISED_BLOCK * Q8_BYTES), np.int8),
            output_gate=empty((rows, attention.heads * attention.head_dim), np.float32),
        )


class HybridState(NamedTuple):
    """The state of one thread. plain: what other models have, too; kept: the arrays of any cache;
    scratch: shared by all threads; buffers: the thread's own."""

    plain: ThreadState
    weights: DeltaWeights
    shape: DeltaShape
    kept: KeptRows
    scratch: DeltaScratch
    buffers: DeltaBuffers


@compiled()
def hybrid_state_of(fields: HybridState) -> State:
    """Return the state of a thread as one argument."""
    return State(fields)
