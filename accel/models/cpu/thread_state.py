"""What a thread computes forwards with, as one argument.

Sixty arrays stay the same from one forward to the next. To take them apart takes a noticeable part
of a small forward.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.experimental import structref

from accel.models.cpu.attention import AttentionBuffers, Floats, Kept, Shape
from accel.models.cpu.lm_head import Walk
from accel.models.cpu.matmul import Packed
from accel.models.cpu.parts import Scratch, Weights
from accel.native.numba_cache import FieldsType, compiled_with


@structref.register
class _ThreadStateType(FieldsType):
    """Compiled form of ``ThreadState``."""


class ThreadState(structref.StructRefProxy):
    """What one thread of a forward has: see ``thread_state_of``."""


class OpenThreadState(NamedTuple):
    """What it has: taken out once, it is not counted again in every forward."""

    weights: Weights
    shape: Shape
    vocabulary: int
    threads: int
    rotations: Floats
    kept: Kept
    key_words: Packed
    value_words: Packed
    scratch: Scratch
    walk: Walk
    room: AttentionBuffers
    logits: Floats


structref.define_proxy(ThreadState, _ThreadStateType, list(OpenThreadState._fields))


@compiled_with()
def thread_state_of(
    weights: Weights,
    shape: Shape,
    vocabulary: int,
    threads: int,
    rotations: Floats,
    kept: Kept,
    key_words: Packed,
    value_words: Packed,
    scratch: Scratch,
    walk: Walk,
    room: AttentionBuffers,
    logits: Floats,
) -> ThreadState:
    """One of ``threads`` with these: of the model, with ``rotations``, float32 [positions, 2,
    depth / 2], cosine and sine; of a cache, as it is kept and as ``multiply`` takes it; what all
    threads share; and its own ``room`` for attention and ``logits`` for a walk, float32 [rows,
    ``lm_head.COLUMNS``]."""
    return ThreadState(
        weights,
        shape,
        vocabulary,
        threads,
        rotations,
        kept,
        key_words,
        value_words,
        scratch,
        walk,
        room,
        logits,
    )


@compiled_with(forceinline=True, inner=True)
def opened(state: Any) -> OpenThreadState:
    """What it has."""
    return OpenThreadState(
        state.weights,
        state.shape,
        state.vocabulary,
        state.threads,
        state.rotations,
        state.kept,
        state.key_words,
        state.value_words,
        state.scratch,
        state.walk,
        state.room,
        state.logits,
    )


__all__ = ["OpenThreadState", "ThreadState", "opened", "thread_state_of"]
