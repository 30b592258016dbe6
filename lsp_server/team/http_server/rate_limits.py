"""Limits on the requests of one key."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lsp_server.team.http_server.errors import too_many

KEEP_ALIVE_S = 75
"""A connection without a request stays open for so long: longer than clients keep theirs, since a
request that meets the end of its connection fails."""

PATIENCE_S = 0.5
"""A request that waits for so long while others share all forwards is refused: an editor asks anew
before long, and what it asked is stale by then."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The limits of every key."""

    requests_per_minute: float = 3000.0
    """On average; a tenth of it may come at once."""
    concurrent: int = 32
    """Requests of a key that are under way."""
    body_bytes: int = 8 << 20
    """Of a request."""

    @property
    def burst(self) -> float:
        """Requests that may come at once after a pause."""
        return max(self.requests_per_minute / 10, 1.0)


@dataclass(slots=True)
class _Usage:
    tokens: float
    seen: float
    running: int = 0


class UsageByKey:
    """The requests of each key: token buckets, and the number that is under way."""

    def __init__(self, limits: RequestLimits, now: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._now = now
        self._usage: dict[str, _Usage] = {}

    @contextmanager
    def request(self, name: str) -> Iterator[None]:
        """Count a request of a key while it runs. Raises RequestRefused with 429."""
        usage = self._refilled(name)
        rate = self.limits.requests_per_minute / 60
        if usage.tokens < 1:
            wait_s = math.ceil((1 - usage.tokens) / rate)
            message = f"this key has too many requests a minute; try again in {wait_s} s"
            raise too_many(message, wait_s)
        if usage.running >= self.limits.concurrent:
            raise too_many("this key has too many requests at once; try again in 1 s", 1)
        usage.tokens -= 1
        usage.running += 1
        try:
            yield
        finally:
            usage.running -= 1

    def _refilled(self, name: str) -> _Usage:
        now = self._now()
        usage = self._usage.setdefault(name, _Usage(self.limits.burst, now))
        gained = (now - usage.seen) * self.limits.requests_per_minute / 60
        usage.tokens = min(self.limits.burst, usage.tokens + gained)
        usage.seen = now
        return usage
