"""The state of a thread of the compiled forward: sixty arrays, handed over as one argument."""

from __future__ import annotations

from typing import NamedTuple

from accel.models.cpu.attention import AttentionBuffers, Floats, KVCache, Shape
from accel.models.cpu.lm_head import GreedyVerification
from accel.models.cpu.scratch import Scratch, TileBuffers
from accel.models.cpu.weights import Weights
from accel.native.numba_cache import State, compiled


class ThreadState(NamedTuple):
    """The state of one of ``threads`` threads.

    cos_sin: float32 [positions, 2, head_dim / 2]; kv: the arrays of a cache of one block: those
    that a forward computes for have the same form; scratch, verification: shared by all threads;
    attention_buffers, tile_buffers, logits: the thread's own, logits float32 [rows,
    ``lm_head.COLUMNS``].
    """

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


@compiled()
def thread_state_of(fields: ThreadState) -> State:
    """Return the state of a thread as one argument."""
    return State(fields)
