"""The turns of the daemon's event loop: while one lasts, no editor is answered. The log tells of
long ones, and which handlers ran in them."""

from __future__ import annotations

import asyncio
import logging
import time
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

logger = logging.getLogger(__name__)

LONG_TURN_S = 0.03


class LoopTurns:
    """Those of one event loop."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.longest_of = ""
        """What ran in the longest."""
        self._began = time.perf_counter()
        self._ran: dict[str, float] = {}

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the time from one wait of the loop to the next. CPython's loops wait in their
        selector, or in what stands for one on Windows."""
        selector = loop._selector  # type: ignore[attr-defined]
        waits: Callable[[float | None], Any] = selector.select

        def select(timeout: float | None = None) -> Any:
            self._end(time.perf_counter() - self._began)
            events = waits(timeout)
            self._began = time.perf_counter()
            return events

        selector.select = select

    def note(self, name: str, seconds: float) -> None:
        """Note that a handler ran for ``seconds`` in this turn."""
        self._ran[name] = self._ran.get(name, 0.0) + seconds

    @types.coroutine
    def noted(self, name: str, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Yield a handler's work, each of whose steps is noted."""
        step, value = work.send, None
        while True:
            started = time.perf_counter()
            try:
                waited_for = step(value)
            except StopIteration as end:
                return end.value
            finally:
                self.note(name, time.perf_counter() - started)
            try:
                step, value = work.send, (yield waited_for)
            except BaseException as error:
                step, value = work.throw, error

    def _end(self, seconds: float) -> None:
        if seconds > LONG_TURN_S:
            handlers = sorted(self._ran.items(), key=lambda handler: -handler[1])
            ran = ", ".join(
                f"{name} {1000 * took:.0f} ms" for name, took in handlers[:3] if took > 1e-3
            )
            ran = ran or "no handler"
            logger.warning("a turn of the event loop took %.0f ms: %s", 1000 * seconds, ran)
            if seconds > self.longest_s:
                self.longest_s, self.longest_of = seconds, ran
        if self._ran:
            self._ran = {}


turns = LoopTurns()
"""Of this process's event loop."""
