"""The threads that compute a forward: the calling one, and others that sleep between forwards.
Where other programs take their cores, fewer compute for a while."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from accel.errors import Interrupted
from accel.models.cpu.barrier import begin, ended_early, new_barrier, request_end, slept_s

Result = TypeVar("Result")

_MOST_SLEPT = 0.2
"""Share of a call's time that threads may have slept in it."""

_LONGEST = 8
"""Doublings of the time with fewer threads: 256 calls."""

_Calls = SimpleQueue[Callable[[], Any] | None]


class ThreadPool:
    """The calling thread, and as many others as a call needs."""

    def __init__(self) -> None:
        self.barrier = new_barrier()
        self._others: list[_Calls] = []
        self._step = 0
        self._setbacks = 0
        self._left = 0
        """Calls that fewer threads take part in."""

    def count(self, wanted: int) -> int:
        """How many of so many threads should take part in the next call; called once before it."""
        if not self._left:
            return wanted
        self._left -= 1
        return max(wanted - self._setbacks, 1)

    def run(
        self,
        function: Callable[..., Result],
        arguments: tuple[Any, ...],
        own: Sequence[Any],
        steps: int,
    ) -> Result:
        """Call ``function(*arguments, own[thread], barrier, thread, first)`` by as many threads as
        have something of their ``own``: each joins the ``steps`` from ``first`` on. Returns what it
        returned to the calling thread, the first, without waiting for others to return. Raises
        Interrupted.
        """
        barrier, first = self.barrier, self._step
        begin(barrier, first, len(own))
        self._step += steps
        for thread in range(1, len(own)):
            call = partial(function, *arguments, own[thread], barrier, thread, first)
            self._calls_of(thread).put(call)
        slept, started = slept_s(barrier), time.perf_counter()
        result = function(*arguments, own[0], barrier, 0, first)
        if len(own) > 1:
            self._note(slept_s(barrier) - slept, time.perf_counter() - started)
        if ended_early(barrier):
            raise Interrupted("the forward was interrupted; start it again")
        return result

    def interrupt(self) -> None:
        """End the call that runs now, or else the next one, after a step. For other threads."""
        request_end(self.barrier)

    def _calls_of(self, thread: int) -> _Calls:
        """Where a thread takes its calls from, which begins where it has not."""
        if len(self._others) < thread:
            calls: _Calls = SimpleQueue()
            threading.Thread(target=_serve, args=(calls,), name="forward", daemon=True).start()
            weakref.finalize(self, calls.put, None)
            self._others.append(calls)
        return self._others[thread - 1]

    def _note(self, slept: float, elapsed: float) -> None:
        """Take fewer threads for some time where they had no cores."""
        if slept > _MOST_SLEPT * elapsed:
            self._setbacks = min(self._setbacks + 1, _LONGEST)
            self._left = 1 << self._setbacks
        elif self._setbacks:
            self._setbacks -= 1


def _serve(calls: _Calls) -> None:
    while (call := calls.get()) is not None:
        call()
        del call
