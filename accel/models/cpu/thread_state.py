"""The state of a thread of the compiled forward: sixty arrays, handed over as one argument."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.experimental import structref

from accel.models.cpu.attention import AttentionBuffers, Floats, KVCache, Shape
from accel.models.cpu.lm_head import GreedyVerification
from accel.models.cpu.scratch import Scratch, TileBuffers
from accel.models.cpu.weights import Weights
from accel.native.numba_cache import FieldsType, compiled_with


@structref.register
class _ThreadStateType(FieldsType):
    """Compiled form of ``ThreadState``."""


class ThreadState(structref.StructRefProxy):
    """The state of one thread of a forward, see ``thread_state_of``."""


class OpenThreadState(NamedTuple):
    """The unpacked state, whose arrays numba does not count again in every forward."""

    weights: Weights
    shape: Shape
    vocabulary: int
    threads: int
    cos_sin: Floats
    kv: KVCache
    scratch: Scratch
    verification: GreedyVerification
    attention_buffers: AttentionBuffers
    tile_buffers: TileBuffers
    logits: Floats


structref.define_proxy(ThreadState, _ThreadStateType, list(OpenThreadState._fields))


@compiled_with()
def thread_state_of(
    weights: Weights,
    shape: Shape,
    vocabulary: int,
    threads: int,
    cos_sin: Floats,
    kv: KVCache,
    scratch: Scratch,
    verification: GreedyVerification,
    attention_buffers: AttentionBuffers,
    tile_buffers: TileBuffers,
    logits: Floats,
) -> ThreadState:
    """Return the state of one of ``threads`` threads.

    cos_sin: float32 [positions, 2, head_dim / 2]; kv: the arrays of a cache of one block: those
    that a forward computes for have the same form; scratch, verification: shared by all threads;
    attention_buffers, tile_buffers, logits: the thread's own, logits float32 [rows,
    ``lm_head.COLUMNS``].
    """
    return ThreadState(
        weights,
        shape,
        vocabulary,
        threads,
        cos_sin,
        kv,
        scratch,
        verification,
        attention_buffers,
        tile_buffers,
        logits,
    )


@compiled_with(forceinline=True, inner=True)
def opened(state: Any) -> OpenThreadState:
    """Unpack a state."""
    return OpenThreadState(
        state.weights,
        state.shape,
        state.vocabulary,
        state.threads,
        state.cos_sin,
        state.kv,
        state.scratch,
        state.verification,
        state.attention_buffers,
        state.tile_buffers,
        state.logits,
    )
