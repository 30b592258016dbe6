"""The threads that compute a forward: the calling one, and others that sleep between forwards."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from accel.errors import Interrupted
from accel.models.cpu.barrier import begin, ended_early, new_barrier, request_end

Result = TypeVar("Result")

_Calls = SimpleQueue[Callable[[], Any] | None]


class ThreadPool:
    """The calling thread, and as many others as a call needs."""

    def __init__(self) -> None:
        self.barrier = new_barrier()
        self._others: list[_Calls] = []
        self._step = 0

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
        result = function(*arguments, own[0], barrier, 0, first)
        if ended_early(barrier):
            raise Interrupted("the forward was interrupted; start it again")
        return result

    def interrupt(self) -> None:
        """End the call that runs now, or else the next one, after a step. For other threads."""
        request_end(self.barrier)

    def _calls_of(self, thread: int) -> _Calls:
        """Return the queue of calls of a thread, which is started where it was not."""
        if len(self._others) < thread:
            calls: _Calls = SimpleQueue()
            threading.Thread(target=_serve, args=(calls,), name="forward", daemon=True).start()
            weakref.finalize(self, calls.put, None)
            self._others.append(calls)
        return self._others[thread - 1]


def _serve(calls: _Calls) -> None:
    while (call := calls.get()) is not None:
        call()
        del call
