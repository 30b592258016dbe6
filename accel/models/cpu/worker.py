"""What a thread computes forwards with, as one argument.

Sixty arrays stay the same from one forward to the next. To take them apart takes a noticeable part
of a small forward.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.experimental import structref

from accel.models.cpu.attention import Floats, Kept, Room, Shape
from accel.models.cpu.lm_head import Found, WalkRoom
from accel.models.cpu.matmul import Packed
from accel.models.cpu.parts import Scratch, Weights
from accel.models.cpu.worker_handoff import Job
from accel.native.numba_cache import FieldsType, compiled_with


@structref.register
class _SideType(FieldsType):
    """Compiled form of ``Side``."""


class Side(structref.StructRefProxy):
    """One of the two threads of a forward: see ``side_of``."""


class OpenSide(NamedTuple):
    """What a side has: taken out once, it is not counted again in every forward."""

    weights: Weights
    shape: Shape
    vocabulary: int
    rotations: Floats
    kept: Kept
    key_words: Packed
    value_words: Packed
    found: Found
    job: Job
    row_scratch: Scratch
    column_scratch: Scratch
    room: Room
    walk_room: WalkRoom


structref.define_proxy(Side, _SideType, list(OpenSide._fields))


@compiled_with()
def side_of(
    weights: Weights,
    shape: Shape,
    vocabulary: int,
    rotations: Floats,
    kept: Kept,
    key_words: Packed,
    value_words: Packed,
    found: Found,
    job: Job,
    row_scratch: Scratch,
    column_scratch: Scratch,
    room: Room,
    walk_room: WalkRoom,
) -> Side:
    """A side with these: of the model, with ``rotations``, float32 [positions, 2, depth / 2],
    cosine and sine; of a cache, as it is kept and as ``multiply`` takes it; what both sides share;
    and its own, where ``column_scratch`` has ``x``, ``normed`` and ``gate_up`` of its own."""
    return Side(
        weights,
        shape,
        vocabulary,
        rotations,
        kept,
        key_words,
        value_words,
        found,
        job,
        row_scratch,
        column_scratch,
        room,
        walk_room,
    )


@compiled_with(forceinline=True, inner=True)
def opened(side: Any) -> OpenSide:
    """What it has."""
    return OpenSide(
        side.weights,
        side.shape,
        side.vocabulary,
        side.rotations,
        side.kept,
        side.key_words,
        side.value_words,
        side.found,
        side.job,
        side.row_scratch,
        side.column_scratch,
        side.room,
        side.walk_room,
    )


__all__ = ["OpenSide", "Side", "opened", "side_of"]
