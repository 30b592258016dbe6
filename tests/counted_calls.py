"""The number of calls of some work: a lost shortcut changes it, a busy machine does not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def counted_calls(work: Callable[[], object]) -> int:
    """Return the number of functions of Python and of C that ``work`` calls in this thread."""
    calls = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls
