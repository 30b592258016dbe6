"""Two threads that compute halves of the rows of a forward.

Both run one compiled function and meet in it, see ``accel.meeting``. The second thread sleeps
between forwards. On a busy machine it may lose its core in the middle, and the first waits for it:
after such a wait the first works alone for some forwards, for longer each time it happens again.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from accel.meeting import break_off, is_broken, late, new_meeting

Result = TypeVar("Result")

_LONGEST = 8
"""Doublings of the time alone: 256 forwards."""


class _Mailbox:
    """What the thread sees; it knows nothing of its owner, who may be forgotten meanwhile."""

    def __init__(self) -> None:
        self.full = threading.Lock()
        self.full.acquire()
        self.call: Callable[[], Any] | None = None

    def put(self, call: Callable[[], Any] | None) -> None:
        self.call = call
        self.full.release()


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

    def is_free(self) -> bool:
        """Whether the second thread may be relied on; asked once before each call."""
        if self.is_patient or not self._alone:
            return not is_broken(self.meeting)
        self._alone -= 1
        return False

    def run(
        self,
        function: Callable[..., Result],
        arguments: tuple[Any, ...],
        half: int,
        rows: int,
        own: list[tuple[Any, ...]],
        meetings: int,
    ) -> Result:
        """Call ``function(*arguments, first, last, *own[side], meeting, side, number)`` for the
        first ``half`` of ``rows`` and the others at once; it meets at most ``meetings`` times by the numbers after
        ``number``. Returns what it returned to the calling thread.

        Raises RuntimeError when the second thread failed.
        """
        if self._mailbox is None:
            self._mailbox = _Mailbox()
            parts = self._mailbox, self.meeting
            threading.Thread(target=_serve, args=parts, name="rows", daemon=True).start()
            weakref.finalize(self, self._mailbox.put, None)
        number = self._number
        self._mailbox.put(
            lambda: function(*arguments, half, rows, *own[1], self.meeting, 1, number)
        )
        result = function(*arguments, 0, half, *own[0], self.meeting, 0, number)
        self._number += meetings
        if is_broken(self.meeting):
            raise RuntimeError("the second thread of a forward failed; see the log")
        before, self._late = self._late, late(self.meeting)
        if self._late > before:
            self._setbacks = min(self._setbacks + 1, _LONGEST)
            self._alone = 1 << self._setbacks
        elif self._setbacks:
            self._setbacks -= 1
        return result


def _serve(mailbox: _Mailbox, meeting: Any) -> None:
    try:
        while True:
            mailbox.full.acquire()
            call, mailbox.call = mailbox.call, None
            if call is None:
                return
            call()
            del call
    except BaseException:
        break_off(meeting)
        raise
