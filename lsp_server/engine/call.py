"""A request to an engine that is under way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lsp_server.engine.jobs import Span

OnSpans = Callable[[list[Span]], None]


@dataclass(slots=True)
class Call:
    """A request under way. Cancelling it stops the decode loop within one forward."""

    id: int
    urgency: int
    future: asyncio.Future[Any]
    on_spans: OnSpans | None
    cancel: Callable[[], None]
    started: float = field(default_factory=time.monotonic)
    cancelled: float | None = None
    """When it was cancelled."""
