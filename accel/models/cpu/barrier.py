"""The barrier where threads of a forward meet, and the spans of work that they take from.

The items of a step are shared out in spans, one for each thread, of which it takes one by one, and
then what others have left: so a thread reads what it has fetched, and in every layer writes to its
own core's cache. The last to arrive opens the next step. One word holds the step, and the numbers
of threads that take part, have arrived and come: a thread joins with the step after the current
one, so no thread waits for another that was not given a core in time.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel.native.numba_cache import compiled
from accel.native.simd import I32, I64, call, pointer
from operating_system.system import yielding_function

Barrier = NDArray[np.int64]
"""What all threads share: the word, how many spans a step has, how many threads sleep, how long
they do at most, whether the end of a forward is requested, and whether a forward
has ended for that; then how many items were taken of each span."""

_APART = 16
"""Numbers that are written at different times have cache lines of their own."""

_WORD, _SPANS, _ASLEEP, _LONGEST, _END_REQUESTED, _ENDED, _TAKEN = range(0, 7 * _APART, _APART)

MOST_THREADS = 16
"""At most so many threads share a forward: more would wait for memory."""

_MEMBER, _COMES, _STEP = 8, 16, 24
"""Bits of the word at which these begin: those who take part, who come, and the step; those who
have arrived come first."""

_MOST = 255

_PATIENCE = 3000
"""Looks at the word before a thread sleeps: about as long as it takes to wake it."""

_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine(), 0) if sys.platform == "linux" else 0
"""The number of the system call by which a thread sleeps until a word changes, 0 for none."""

_SLEEP, _WAKE = 128, 129
"""What it is to do: by threads of one process."""

_ALL = 1 << 30

NAP_S = 1e-3
"""How long a thread sleeps at most before it looks again."""


@intrinsic
def _load(_context: Any, barrier: Any, index: Any) -> Any:
    """Read a number before everything that is read after."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = pointer(context, builder, signature.args[0], arguments[0], arguments[1], I64)
        return builder.load_atomic(address, "seq_cst", 8)

    return types.int64(barrier, index), generate


@intrinsic
def _added(_context: Any, barrier: Any, index: Any, value: Any) -> Any:
    """Add to a number at once; returns what it was before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = pointer(context, builder, signature.args[0], arguments[0], arguments[1], I64)
        return builder.atomic_rmw("add", address, arguments[2], "seq_cst")

    return types.int64(barrier, index, types.int64), generate


@intrinsic
def _replaced(_context: Any, barrier: Any, index: Any, before: Any, after: Any) -> Any:
    """Write a number where another is expected; whether that was there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = pointer(context, builder, signature.args[0], arguments[0], arguments[1], I64)
        exchanged = builder.cmpxchg(address, arguments[2], arguments[3], "seq_cst", "seq_cst")
        return builder.extract_value(exchanged, 1)

    return types.boolean(barrier, index, types.int64, types.int64), generate


@intrinsic
def _pause(_context: Any) -> Any:
    """Tell the processor that a loop waits."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        # An emulated process is told of another machine than it is compiled for.
        if builder.module.triple.startswith("x86_64"):
            call(builder, "llvm.x86.sse2.pause", ir.VoidType())
        elif builder.module.triple.startswith(("aarch64", "arm64")):
            # Arm's own hint, ``yield``, takes no time on most; this takes about as long as x86's.
            call(builder, "llvm.aarch64.isb", ir.VoidType(), I32(15))
        return context.get_dummy_value()

    return types.void(), generate


_system_call = types.ExternalFunction("syscall", types.int64(*[types.int64] * 7))
_give_away: Any = types.ExternalFunction(yielding_function(), types.int32())


@compiled(borrows=True)
def _sleep(barrier: Barrier, word: int) -> None:
    """Sleep until another word is there, or for some time."""
    if _FUTEX == 0:
        _give_away()
        return
    _added(barrier, _ASLEEP, 1)
    longest = barrier.ctypes.data + 8 * _LONGEST
    _system_call(_FUTEX, barrier.ctypes.data, _SLEEP, word & 0xFFFFFFFF, longest, 0, 0)
    _added(barrier, _ASLEEP, -1)


@compiled(borrows=True)
def _wake(barrier: Barrier) -> None:
    """Wake all who sleep."""
    if _FUTEX != 0 and _load(barrier, _ASLEEP) > 0:
        _system_call(_FUTEX, barrier.ctypes.data, _WAKE, _ALL, 0, 0, 0)


def new_barrier() -> Barrier:
    """Return what the threads of a forward share."""
    barrier = np.zeros(_TAKEN + MOST_THREADS * _APART, np.int64)
    # Whole seconds, and nanoseconds.
    barrier[_LONGEST + 1] = int(NAP_S * 1e9)
    return barrier


def begin(barrier: Barrier, step: int, threads: int) -> None:
    """Open the first step of a forward, larger than all before, to thread 0 alone: others join."""
    barrier[_SPANS] = threads
    barrier[_TAKEN:] = 0
    barrier[_WORD] = step << _STEP | 1 << _MEMBER


@compiled(borrows=True)
def join(barrier: Barrier, last: int) -> int:
    """Take part in a forward that ends before step ``last``, from the step that is returned on: not
    at all from ``last`` on."""
    while True:
        word = _load(barrier, _WORD)
        step = word >> _STEP
        if step >= last:
            return last
        if _replaced(barrier, _WORD, word, word + (1 << _COMES)):
            return await_after(barrier, step)


@compiled(borrows=True)
def take(barrier: Barrier, thread: int, items: int) -> int:
    """Return the next of a step's items for a thread, ``items`` where none is left."""
    spans = barrier[_SPANS]
    for away in range(spans):
        span = (thread + away) % spans
        counter, first, after = (
            _TAKEN + span * _APART,
            items * span // spans,
            items * (span + 1) // spans,
        )
        if first + _load(barrier, counter) < after:
            item = first + _added(barrier, counter, 1)
            if item < after:
                return item
    return items


@compiled(borrows=True)
def is_last_to_arrive(barrier: Barrier) -> bool:
    """Say that nothing is left to take; whether all others have said so."""
    word = _added(barrier, _WORD, 1) + 1
    return bool(word & _MOST == word >> _MEMBER & _MOST)


@compiled(borrows=True)
def open_step(barrier: Barrier, step: int) -> None:
    """Let all go on to a step, those who come among them; by the last to arrive."""
    for span in range(barrier[_SPANS]):
        barrier[_TAKEN + span * _APART] = 0
    while True:
        word = _load(barrier, _WORD)
        members = (word >> _MEMBER & _MOST) + (word >> _COMES & _MOST)
        if _replaced(barrier, _WORD, word, step << _STEP | members << _MEMBER):
            break
    _wake(barrier)


@compiled(borrows=True)
def await_after(barrier: Barrier, step: int) -> int:
    """Wait for the step after one; returns it."""
    looks = 0
    while True:
        word = _load(barrier, _WORD)
        if word >> _STEP > step:
            return word >> _STEP
        _pause()
        looks += 1
        if looks > _PATIENCE:
            _sleep(barrier, word)


def request_end(barrier: Barrier) -> None:
    """Have the forward that is computed now, or the next one, end after a step. For threads that
    take no part in it."""
    barrier[_END_REQUESTED] = 1


@compiled(borrows=True)
def is_end_requested(barrier: Barrier) -> bool:
    """Return whether the end is requested, and note it; by the last to arrive."""
    if _load(barrier, _END_REQUESTED) == 0:
        return False
    barrier[_ENDED] = 1
    return True


def ended_early(barrier: Barrier) -> bool:
    """Return whether the last forward ended by request; reset the request."""
    if not barrier[_ENDED]:
        return False
    barrier[_END_REQUESTED] = barrier[_ENDED] = 0
    return True


@compiled(borrows=True)
def linger(thread: int) -> None:
    """Let thread 0 leave first: all need the interpreter's lock next, and the second at it
    sleeps."""
    for _ in range(min(thread, 4) * 400):
        _pause()
