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

from accel.native import simd as lanes
from accel.native.numba_cache import compiled_with
from accel.native.simd import I64, call, pointer

_APART = 16
"""Numbers that different threads write stand in lines of their own."""

LATE, _BROKEN = 2 * _APART, 3 * _APART
"""Where stands how often side 0 waited long, and whether a side broke off."""
_JOB, _TAKEN, _DONE = 4 * _APART, 5 * _APART, 6 * _APART
_CALLED, _ELSEWHERE = 7 * _APART, 8 * _APART

PATIENCE = 20_000
"""Looks at the other's number before the core is given away: waking the other takes less time,
losing its core costs it more."""

STANDS_BY = 70_000
"""Looks before a thread that stands by goes to sleep: a few plain steps between drafts."""

_LOOKS_AT_ONCE = 256
"""Looks of a thread that stands by before it lets others have its core, should they wait."""


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


@compiled_with(lanes, borrows=True)
def _wait(meeting: NDArray[np.int64], side: int, number: int) -> None:
    looks = 0
    while _look(meeting, (1 - side) * _APART) < number and not _look(meeting, _BROKEN):
        _pause()
        looks += 1
        if looks > PATIENCE:
            if looks == PATIENCE + 1 and side == 0:
                meeting[LATE] += 1
            _give_away()


@compiled_with(lanes, borrows=True)
def meet(meeting: NDArray[np.int64], side: int, number: int) -> None:
    """Wait until the other side (0 or 1) comes to the meeting of this number, or has broken."""
    _publish(meeting, side * _APART, number)
    _wait(meeting, side, number)


@compiled_with(lanes, borrows=True)
def meet_where(is_shared: bool, meeting: NDArray[np.int64], side: int, number: int) -> int:
    """Meet by the number after ``number`` where something is shared; returns that number."""
    if is_shared:
        meet(meeting, side, number + 1)
    return number + 1


@compiled_with(lanes, borrows=True)
def follow_where(is_shared: bool, meeting: NDArray[np.int64], side: int, number: int) -> int:
    """``meet_where``, but that side 0 waits for nobody: what side 1 makes is not for it."""
    if is_shared and side == 0:
        _publish(meeting, 0, number + 1)
    elif is_shared:
        _wait(meeting, 1, number + 1)
    return number + 1


@compiled_with(lanes, borrows=True)
def linger(side: int) -> None:
    """Let side 0 leave first: both want the interpreter's lock next, and whoever comes second
    sleeps."""
    for _ in range(side * 400):
        _pause()


@compiled_with(lanes, borrows=True)
def publish_job(meeting: NDArray[np.int64], job: int) -> None:
    """Say that a job of this number, larger than all before, may be taken."""
    _publish(meeting, _JOB, job)


@compiled_with(lanes, borrows=True)
def stand_by(meeting: NDArray[np.int64]) -> bool:
    """Wait for a job, and take it. False when none comes for some time, or the thread that waits is
    wanted elsewhere."""
    for look in range(STANDS_BY):
        is_there = _look(meeting, _JOB) > meeting[_TAKEN]
        # A job may be for the call that the thread is wanted for, so this is looked at after it.
        if _look(meeting, _ELSEWHERE) or _look(meeting, _BROKEN):
            break
        if is_there:
            meeting[_TAKEN] = _look(meeting, _JOB)
            return True
        if look % _LOOKS_AT_ONCE == _LOOKS_AT_ONCE - 1:
            _give_away()
        _pause()
    return False


@compiled_with(lanes, borrows=True)
def note_done(meeting: NDArray[np.int64]) -> None:
    """The job that was taken is done, and what it was told may be written over."""
    _publish(meeting, _DONE, meeting[_TAKEN])


@compiled_with(lanes, borrows=True)
def await_done(meeting: NDArray[np.int64]) -> None:
    """Wait until the job that was published last is done, or the other side has broken."""
    looks = 0
    while _look(meeting, _DONE) < meeting[_JOB] and not _look(meeting, _BROKEN):
        _pause()
        looks += 1
        if looks > PATIENCE:
            _give_away()


def call_for(meeting: NDArray[np.int64], job: int) -> None:
    """Note that a job of this number is going to be published."""
    meeting[_CALLED] = job


def is_called_for(meeting: NDArray[np.int64]) -> bool:
    """Whether a job is published, or going to be, that was not taken."""
    return bool(meeting[_CALLED] > meeting[_TAKEN])


def want_elsewhere(meeting: NDArray[np.int64], is_wanted: bool) -> None:
    """Whether the thread that stands by is wanted for something else."""
    meeting[_ELSEWHERE] = is_wanted


def new_meeting() -> NDArray[np.int64]:
    """What two threads share. int64."""
    return np.zeros(9 * _APART, np.int64)


def late(meeting: NDArray[np.int64]) -> int:
    """How often side 0 waited long."""
    return int(meeting[LATE])


def is_broken(meeting: NDArray[np.int64]) -> bool:
    """Whether a side broke off."""
    return bool(meeting[_BROKEN])


def break_off(meeting: NDArray[np.int64]) -> None:
    """Nobody waits any longer."""
    meeting[_BROKEN] = 1


__all__ = [
    "LATE",
    "PATIENCE",
    "await_done",
    "break_off",
    "call_for",
    "follow_where",
    "is_broken",
    "is_called_for",
    "late",
    "linger",
    "meet",
    "meet_where",
    "new_meeting",
    "note_done",
    "publish_job",
    "stand_by",
    "want_elsewhere",
]
