"""The state of a thread of a hybrid's forward."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.experimental import structref

from accel.models.cpu import thread_state as plain_state
from accel.models.cpu.delta_net.kept_rows import KeptRows
from accel.models.cpu.delta_net.shape import DeltaBuffers, DeltaShape
from accel.models.cpu.delta_net.weights import DeltaScratch, DeltaWeights
from accel.models.cpu.thread_state import OpenThreadState, ThreadState, opened
from accel.native.numba_cache import FieldsType, compiled_with


@structref.register
class _HybridStateType(FieldsType):
    """Compiled form of ``HybridState``."""


class HybridState(structref.StructRefProxy):
    """The state of one thread of a forward, see ``hybrid_state_of``."""


class OpenHybridState(NamedTuple):
    """The unpacked state. plain: what other models have, too."""

    plain: OpenThreadState
    weights: DeltaWeights
    shape: DeltaShape
    kept: KeptRows
    scratch: DeltaScratch
    buffers: DeltaBuffers


structref.define_proxy(HybridState, _HybridStateType, list(OpenHybridState._fields))


@compiled_with(plain_state)
def hybrid_state_of(
    plain: ThreadState,
    weights: DeltaWeights,
    shape: DeltaShape,
    kept: KeptRows,
    scratch: DeltaScratch,
    buffers: DeltaBuffers,
) -> HybridState:
    """Return the state of one thread. kept: the arrays of any cache; scratch: shared by all
    threads; buffers: the thread's own."""
    return HybridState(plain, weights, shape, kept, scratch, buffers)


@compiled_with(plain_state, forceinline=True, inner=True)
def opened_hybrid(state: Any) -> OpenHybridState:
    """Unpack a state."""
    return OpenHybridState(
        opened(state.plain), state.weights, state.shape, state.kept, state.scratch, state.buffers
    )
