"""The state of a thread of a hybrid's forward."""

from __future__ import annotations

from typing import NamedTuple

from accel.models.cpu.delta_net.kept_rows import KeptRows
from accel.models.cpu.delta_net.shape import DeltaBuffers, DeltaShape
from accel.models.cpu.delta_net.weights import DeltaScratch, DeltaWeights
from accel.models.cpu.thread_state import ThreadState
from accel.native.numba_cache import State, compiled


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
