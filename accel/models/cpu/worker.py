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
class _SideType(FieldsType):
    """Compiled form of ``Side``."""


class Side(structref.StructRefProxy):
    """One of the threads of a forward: see ``side_of``."""


class OpenSide(NamedTuple):
    """What a side has: taken out once, it is not counted again in every forward."""

    weights: Weights
    shape: Shape
    vocabulary: int
    sides: int
    rotations: Floats
    kept: Kept
    key_words: Packed
    value_words: Packed
    scratch: Scratch
    walk: Walk
    room: AttentionBuffers
    logits: Floats


structref.define_proxy(Side, _SideType, list(OpenSide._fields))


@compiled_with()
def side_of(
    weights: Weights,
    shape: Shape,
    vocabulary: int,
    sides: int,
    rotations: Floats,
    kept: Kept,
    key_words: Packed,
    value_words: Packed,
    scratch: Scratch,
    walk: Walk,
    room: AttentionBuffers,
    logits: Floats,
) -> Side:
    """One of ``sides`` with these: of the model, with ``rotations``, float32 [positions, 2,
    depth / 2], cosine and sine; of a cache, as it is kept and as ``multiply`` takes it; what all
    sides share; and its own ``room`` for attention and ``logits`` for a walk, float32 [rows,
    ``lm_head.COLUMNS``]."""
    return Side(
        weights,
        shape,
        vocabulary,
        sides,
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
def opened(side: Any) -> OpenSide:
    """What it has."""
    return OpenSide(
        side.weights,
        side.shape,
        side.vocabulary,
        side.sides,
        side.rotations,
        side.kept,
        side.key_words,
        side.value_words,
        side.scratch,
        side.walk,
        side.room,
        side.logits,
    )


__all__ = ["OpenSide", "Side", "opened", "side_of"]
