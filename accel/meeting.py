"""Two threads that compute halves of the same rows, and where they wait for each other.

Both run one compiled function. At a meeting each writes the number of the meeting and waits until
the other has written it too: some hundred nanoseconds where both have a core of their own. A
thread that waits long gives its core away, and says so, because then the other has none.
"""

from __future__ import annotations

import os
import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel import lanes
from accel.lanes import I64, call, pointer
from accel.sources.compiled import compiled_with

_APART = 16
"""Numbers that different threads write stand in lines of their own."""

_LATE, _BROKEN = 2 * _APART, 3 * _APART

PATIENCE = 20_000
"""Looks at the other's number before the core is given away, some 300 us: waking the other takes
less, losing its core costs it more."""


@intrinsic
def _publish(_context: Any, meeting: Any, at: Any, value: Any) -> Any:
    """Write a number after everything that was written before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = pointer(context, builder, signature.args[0], arguments[0], arguments[1], I64)
        builder.store_atomic(arguments[2], place, "release", 8)
        return context.get_dummy_value()

    return types.void(meeting, at, types.int64), generate


@intrinsic
def _look(_context: Any, meeting: Any, at: Any) -> Any:
    """Read a number before everything that is read after."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = pointer(context, builder, signature.args[0], arguments[0], arguments[1], I64)
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(meeting, at), generate


@intrinsic
def _pause(_context: Any) -> Any:
    """Tell the processor that a loop waits."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        if platform.machine().lower() in ("x86_64", "amd64"):
            call(builder, "llvm.x86.sse2.pause", ir.VoidType())
        return context.get_dummy_value()

    return types.void(), generate


_give_away = types.ExternalFunction("sched_yield", types.int32()) if os.name == "posix" else _pause


@compiled_with(lanes)
def _wait(meeting: NDArray[np.int64], side: int, number: int) -> None:
    looks = 0
    while _look(meeting, (1 - side) * _APART) < number and not _look(meeting, _BROKEN):
        _pause()
        looks += 1
        if looks > PATIENCE:
            if looks == PATIENCE + 1 and side == 0:
                meeting[_LATE] += 1
            _give_away()


@compiled_with(lanes)
def meet(meeting: NDArray[np.int64], side: int, number: int) -> None:
    """Wait until the other side (0 or 1) comes to the meeting of this number, or has broken."""
    _publish(meeting, side * _APART, number)
    _wait(meeting, side, number)


@compiled_with(lanes)
def meet_where(is_shared: bool, meeting: NDArray[np.int64], side: int, number: int) -> int:
    """Meet by the number after ``number`` where something is shared; returns that number."""
    if is_shared:
        meet(meeting, side, number + 1)
    return number + 1


@compiled_with(lanes)
def follow_where(is_shared: bool, meeting: NDArray[np.int64], side: int, number: int) -> int:
    """``meet_where``, but that side 0 waits for nobody: what side 1 makes is not for it."""
    if is_shared and side == 0:
        _publish(meeting, 0, number + 1)
    elif is_shared:
        _wait(meeting, 1, number + 1)
    return number + 1


@compiled_with(lanes)
def linger(side: int) -> None:
    """Let side 0 leave first, some 20 us: both want the interpreter's lock next, and whoever comes
    second sleeps."""
    for _ in range(side * 400):
        _pause()


def new_meeting() -> NDArray[np.int64]:
    """What two threads share. int64."""
    return np.zeros(4 * _APART, np.int64)


def late(meeting: NDArray[np.int64]) -> int:
    """How often side 0 waited long."""
    return int(meeting[_LATE])


def is_broken(meeting: NDArray[np.int64]) -> bool:
    """Whether a side broke off."""
    return bool(meeting[_BROKEN])


def break_off(meeting: NDArray[np.int64]) -> None:
    """Nobody waits any longer."""
    meeting[_BROKEN] = 1


__all__ = [
    "PATIENCE",
    "break_off",
    "follow_where",
    "is_broken",
    "late",
    "linger",
    "meet",
    "meet_where",
    "new_meeting",
]
