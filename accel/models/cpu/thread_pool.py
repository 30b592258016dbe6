"""The threads that compute a forward: the calling one, and others that sleep between forwards.

All run one compiled function and meet in it, see ``barrier``. They are woken with every forward and
join it when they have a core.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from accel.models.cpu.barrier import begin, new_meeting

Result = TypeVar("Result")

_Calls = SimpleQueue[Callable[[], Any] | None]


class ThreadPool:
    """The calling thread, and as many others as a call has asked for."""

    def __init__(self) -> None:
        self.meeting = new_meeting()
        self._others: list[_Calls] = []
        self._step = 0

    def run(
        self,
        function: Callable[..., Result],
        arguments: tuple[Any, ...],
        own: Sequence[Any],
        steps: int,
    ) -> Result:
        """Call ``function(*arguments, own[side], meeting, side, first)`` by as many threads as have
        something of their ``own``: each joins the ``steps`` from ``first`` on. Returns what it
        returned to the calling thread, side 0, without waiting for others to return.
        """
        meeting, first = self.meeting, self._step
        begin(meeting, first)
        self._step += steps
        for side in range(1, len(own)):
            call = partial(function, *arguments, own[side], meeting, side, first)
            self._calls_of(side).put(call)
        return function(*arguments, own[0], meeting, 0, first)

    def _calls_of(self, side: int) -> _Calls:
        """Where a thread takes its calls from, which begins where it has not."""
        if len(self._others) < side:
            calls: _Calls = SimpleQueue()
            threading.Thread(target=_serve, args=(calls,), name="forward", daemon=True).start()
            weakref.finalize(self, calls.put, None)
            self._others.append(calls)
        return self._others[side - 1]


def _serve(calls: _Calls) -> None:
    while (call := calls.get()) is not None:
        call()
        del call
