"""Requests to an engine that are under way, and what is counted of them."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lsp_server.shared.contract.jobs import COMPLETION, Span

OnSpans = Callable[[list[Span]], None]

MAX_LATENCIES = 200


@dataclass(slots=True)
class Call:
    """A request under way. Cancelling it stops the decode loop within one forward."""

    id: int
    priority: int
    future: asyncio.Future[Any]
    on_spans: OnSpans | None
    cancel: Callable[[], object]
    started: float = field(default_factory=time.monotonic)
    cancelled: float | None = None
    """When it was cancelled."""

    async def result(self) -> Any:
        """Return the future's result; a caller that stops waiting cancels the request."""
        try:
            return await asyncio.shield(self.future)
        except asyncio.CancelledError:
            self.cancel()
            raise


class Calls:
    """The table of one engine's calls."""

    def __init__(self) -> None:
        self.on_busy: Callable[[], None] = lambda: None
        """Told when the first request begins and when the last one ends."""
        self.request_count = 0
        """Requests since the engine was made."""
        self.last_used = time.monotonic()
        """When a request last began or ended."""
        self.latencies_s: deque[float] = deque(maxlen=MAX_LATENCIES)
        """Of the last completions."""
        self.cancels_s: deque[float] = deque(maxlen=MAX_LATENCIES)
        """From the cancel of a request to the answer that it has stopped."""
        self.cancel_forwards_s: deque[float] = deque(maxlen=MAX_LATENCIES)
        """What of that was the rest of the forward that ran."""
        self._calls: dict[int, Call] = {}
        self._ids = itertools.count(1)

    def begin(
        self, priority: int, on_spans: OnSpans | None, cancel: Callable[[Call], None]
    ) -> Call:
        """Return a new call; ``cancel`` is asked once to stop it while it is under way."""
        call_id = next(self._ids)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        call = Call(call_id, priority, future, on_spans, lambda: self._cancel(call, cancel))
        self._calls[call_id] = call
        if len(self._calls) == 1:
            self.on_busy()
        self.last_used = time.monotonic()
        self.request_count += 1
        return call

    def _cancel(self, call: Call, cancel: Callable[[Call], None]) -> None:
        if call.id in self._calls:
            call.cancelled = time.monotonic()
            cancel(call)

    def find(self, call_id: int) -> Call | None:
        """Return the call of this id while it is under way."""
        return self._calls.get(call_id)

    def finish(
        self,
        call: Call | None,
        result: Any = None,
        error: Exception | None = None,
        forward_s: float | None = None,
    ) -> None:
        """A call has ended; one that ended before is let be. ``forward_s``: how long a cancel
        waited for the forward that ran, where the engine tells that it has stopped."""
        if call is None or self._calls.pop(call.id, None) is None:
            return
        if not self._calls:
            self.on_busy()
        if call.future.done():
            return
        self.last_used = time.monotonic()
        if error is not None:
            call.future.set_exception(error)
            # A call that nobody awaits any more is no error of ours.
            call.future.exception()
            return
        if call.cancelled is None and call.priority == COMPLETION:
            self.latencies_s.append(time.monotonic() - call.started)
        elif call.cancelled is not None and forward_s is not None:
            self.cancels_s.append(time.monotonic() - call.cancelled)
            self.cancel_forwards_s.append(forward_s)
        call.future.set_result(result)

    def fail_all(self, error: Exception) -> None:
        """There is no engine any more."""
        for call in list(self._calls.values()):
            self.finish(call, error=error)

    @property
    def busy(self) -> bool:
        """A request is under way."""
        return bool(self._calls)

    @property
    def queue_length(self) -> int:
        """Requests that are under way or wait, without those that were cancelled."""
        return sum(call.cancelled is None for call in self._calls.values())

    @property
    def stopping(self) -> int:
        """Cancelled requests that are not known to have stopped."""
        return len(self._calls) - self.queue_length

    @property
    def oldest_started(self) -> float:
        """``time.monotonic()`` of the beginning of the oldest call; there is one."""
        return min(call.started for call in self._calls.values())

    @property
    def counts(self) -> dict[str, Any]:
        """The counts that ``redraft status`` shows."""
        return {
            "queue": self.queue_length,
            "stopping": self.stopping,
            "requests": self.request_count,
            "latency_ms_p50": percentile_ms(self.latencies_s, 50),
            "latency_ms_p95": percentile_ms(self.latencies_s, 95),
        }


def percentile_ms(seconds: Sequence[float], percent: int) -> float:
    """Return a percentile in milliseconds, 0 of nothing."""
    values = list(seconds)
    if len(values) < 2:
        return values[0] * 1000 if values else 0.0
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1] * 1000
