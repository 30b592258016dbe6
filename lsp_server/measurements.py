"""Times that the daemon takes of itself, for ``redraft bench typing``."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

KEPT = 20_000
SAMPLE_EVERY_S = 0.002


class Measurements:
    """Handling times of messages of one client; with ``watch_loop`` also of the event loop."""

    def __init__(self) -> None:
        self.did_change_s: deque[float] = deque(maxlen=KEPT)
        self.answers: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._loop_late_s: deque[float] = deque(maxlen=KEPT)
        self._watching: asyncio.Task[None] | None = None

    def watch_loop(self) -> None:
        """Take the time by which the event loop is late. Costs some processor time."""
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._watch_loop())

    def stop(self) -> None:
        """The client has gone."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _watch_loop(self) -> None:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(SAMPLE_EVERY_S)
            self._loop_late_s.append(time.perf_counter() - started - SAMPLE_EVERY_S)

    def answered(self, msg_id: Any, without_model: bool) -> None:
        """A completion was answered."""
        self.answers.append({"id": msg_id, "withoutModel": without_model})

    def as_json(self, cancels_s: list[float]) -> dict[str, Any]:
        """Everything so far. Times in seconds."""
        return {
            "didChange": list(self.did_change_s),
            "answers": list(self.answers),
            "loopLate": list(self._loop_late_s),
            "cancels": cancels_s,
        }
