"""Two threads that compute halves of the rows of a forward.

Both run one compiled function and meet in it, see ``barrier``. Between forwards the second thread
stands by in that function for some time, see ``worker_handoff``, and then sleeps. On a busy machine
it may lose its core in the middle, and the first waits for it: after such a wait the first works
alone for some forwards, for longer each time it happens again.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from accel.models.cpu.barrier import (
    break_off,
    call_for,
    is_broken,
    is_called_for,
    late,
    new_meeting,
    want_elsewhere,
)

Result = TypeVar("Result")

_LONGEST = 8
"""Doublings of the time alone: 256 forwards."""


class _Mailbox:
    """What the thread sees; it knows nothing of its owner, who may be forgotten meanwhile."""

    def __init__(self, meeting: Any) -> None:
        self.meeting = meeting
        self._full = threading.Lock()
        self._full.acquire()
        self._call: Callable[[], Any] | None = None
        self._own: object = None
        """What the call goes by that the thread is in, or about to be, and stands by in."""
        # Whoever holds it may collect garbage, the owner among it, which puts the last call.
        self._guard = threading.RLock()

    def hand_over(self, own: object, job: int) -> bool:
        """Whether the thread takes a job from where it stands by, and goes by its ``own``."""
        with self._guard:
            stands_by = self._own is own
            if stands_by:
                call_for(self.meeting, job)
            return stands_by

    def put(self, call: Callable[[], Any] | None, own: object = None, job: int = 0) -> None:
        """Have the thread make a call, and stand by in it where it goes by its ``own``; None ends
        the thread. Instead of one that it has not begun with, where nobody waited for that."""
        with self._guard:
            is_waiting, self._call, self._own = self._call is not None, call, own
            if own is not None:
                call_for(self.meeting, job)
            want_elsewhere(self.meeting, True)
            if not is_waiting:
                self._full.release()

    def take(self) -> Callable[[], Any] | None:
        """The next call; sleeps until there is one."""
        self._full.acquire()
        with self._guard:
            want_elsewhere(self.meeting, False)
            call, self._call = self._call, None
            return call

    def may_sleep(self) -> bool:
        """Whether the thread has nothing to do; it no longer stands by then."""
        with self._guard:
            if self._call is None and is_called_for(self.meeting):
                return False
            if self._call is None:
                self._own = None
            return True


class ThreadPair:
    """The calling thread and a second one, which begins with the first shared call."""

    def __init__(self) -> None:
        self.meeting = new_meeting()
        self.is_patient = False
        """Share although the other thread was late, to measure what that costs."""
        self._mailbox: _Mailbox | None = None
        self._number = 0
        self._late = 0
        self._setbacks = 0
        self._alone = 0

    def is_free(self, *, is_long: bool = False) -> bool:
        """Whether the second thread may be relied on; asked once before each call. For a call that
        ``is_long`` it may always be: who waits then gives its core to the other."""
        if self.is_patient or is_long or not self._alone:
            return not is_broken(self.meeting)
        self._alone -= 1
        return False

    def run(
        self,
        function: Callable[..., Result],
        arguments: tuple[Any, ...],
        half: int,
        rows: int,
        own: tuple[Any, Any],
        meetings: int,
        *,
        stands_by: bool = False,
        is_long: bool = False,
    ) -> Result:
        """Call ``function(*arguments, first, last, own[side], meeting, side, number)`` for the
        first ``half`` of ``rows`` and the others at once; it meets at most ``meetings`` times by
        the numbers after ``number``. Returns what it returned to the calling thread.

        A function that ``stands_by`` takes all but its ``own`` from a ``worker_handoff.Job``: it is
        called by the second thread where that is not in it already. One that ``is_long`` takes so
        long that to wait says nothing: the second thread wakes later, and one half may be longer
        than the other.

        Raises RuntimeError when the second thread failed.
        """
        meeting, number, mailbox = self.meeting, self._number, self._begun()
        if not (stands_by and mailbox.hand_over(own[1], number + 1)):
            mailbox.put(
                lambda: function(*arguments, half, rows, own[1], meeting, 1, number),
                *(own[1] if stands_by else None, number + 1),
            )
        result = function(*arguments, 0, half, own[0], meeting, 0, number)
        self._number += meetings
        self._note_how_it_went(is_long=is_long)
        return result

    def _begun(self) -> _Mailbox:
        """The mailbox of the second thread, which begins where it has not."""
        if self._mailbox is None:
            self._mailbox = _Mailbox(self.meeting)
            threading.Thread(target=_serve, args=(self._mailbox,), name="rows", daemon=True).start()
            weakref.finalize(self, self._mailbox.put, None)
        return self._mailbox

    def _note_how_it_went(self, *, is_long: bool = False) -> None:
        """Work alone for some time if the second thread was late; raise if it failed."""
        if is_broken(self.meeting):
            raise RuntimeError("the second thread of a forward failed; see the log")
        before, self._late = self._late, late(self.meeting)
        if is_long:
            return
        if self._late > before:
            self._setbacks = min(self._setbacks + 1, _LONGEST)
            self._alone = 1 << self._setbacks
        elif self._setbacks:
            self._setbacks -= 1


def _serve(mailbox: _Mailbox) -> None:
    try:
        while (call := mailbox.take()) is not None:
            call()
            while not mailbox.may_sleep():
                call()
            del call
    except BaseException:
        break_off(mailbox.meeting)
        raise
