"""Running computations of a document. The newest request wins, one may run ahead of the next, and
typing on stops those that no request waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar


class Work(Protocol):
    """A running computation."""

    def cancel(self) -> None:
        """Stop it: no request waits for it any more."""


AnyWork = TypeVar("AnyWork", bound=Work)


class InFlight(Generic[AnyWork]):
    """The requests of one document. Not thread-safe: the event loop owns it."""

    def __init__(self) -> None:
        self.newest: object = None
        """The request that wins; an older one ends as soon as it sees that it is not this one."""
        self.running: AnyWork | None = None
        """What a request began."""
        self.ahead: AnyWork | None = None
        """What the next request may ask for."""
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def __iter__(self) -> Iterator[AnyWork]:
        """Yield all that runs."""
        return iter([work for work in (self.running, self.ahead) if work is not None])

    def begin(self) -> object:
        """Make a request that came the newest. Nothing else begins by itself now."""
        self._stop_timer()
        self.newest = object()
        self.wake()
        return self.newest

    def soon(self, after_s: float, start: Callable[[], None]) -> None:
        """Begin something by itself, unless a request or something else comes within that time."""
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(after_s, start)

    def run(self, work: AnyWork) -> None:
        """Work for a request takes the place of all other."""
        self.stop()
        self.running = work

    def run_ahead(self, work: AnyWork) -> None:
        """Work for the next request takes the place of what ran ahead."""
        if self.ahead is not None:
            self.ahead.cancel()
        self.ahead = work

    def ended(self, work: AnyWork) -> None:
        """Work is done."""
        if self.running is work:
            self.running = None
        if self.ahead is work:
            self.ahead = None

    def stop(self) -> None:
        """Stop all of it."""
        self._stop_timer()
        stopped, self.running, self.ahead = list(self), None, None
        for work in stopped:
            work.cancel()
        self.wake()

    def close(self) -> None:
        """There is no document any more: a request that waits is not the newest."""
        self.begin()
        self.stop()

    def wake(self) -> None:
        """Let the requests that wait look again."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait until something is new, or the time is up. (``asyncio.wait_for`` before Python 3.12
        swallows a cancel that comes at the same time.)"""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        timer = loop.call_later(timeout_s, self.wake) if timeout_s is not None else None
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()
            self._waiters.remove(waiter)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
