"""An engine that answers what a test writes, piece by piece, as the engine process does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from engine_stand_in import EngineStandIn

from lsp_server.shared.contract.calls import Call
from lsp_server.shared.contract.jobs import PREFILL, AnyJob


class WrittenAnswers(EngineStandIn):
    """``write`` and ``end`` answer the latest request."""

    def __init__(self) -> None:
        super().__init__(next_edit_format="redraft", next_edit_formats=("redraft",))

    def prefill(self, job: AnyJob, client: str, priority: int = PREFILL) -> Call:
        """A prompt is computed at once."""
        call = super().prefill(job, client, priority)
        self.prefills[-1].end()
        return call

    @property
    def asked(self) -> list[Any]:
        return self.jobs

    @property
    def priorities(self) -> list[int]:
        return [one.priority for one in self.requests]

    @property
    def cancelled(self) -> int:
        return sum(one.cancelled for one in self.requests)

    async def write(self, text: str, likely: float = 1.0) -> None:
        """Some more of the answer, each character as likely."""
        self.requests[-1].write(text, likely)
        await asyncio.sleep(0)

    async def wait_for(self, count: int) -> None:
        """Until so many windows were asked for."""
        await self._until(lambda: len(self.asked) >= count)

    async def wait_for_cancels(self, count: int) -> None:
        """Until so many were cancelled, and no more."""
        await self._until(lambda: self.cancelled >= count)
        assert self.cancelled == count

    async def _until(self, is_so: Callable[[], bool]) -> None:
        async def wait() -> None:
            while not is_so():
                await asyncio.sleep(0.005)

        await asyncio.wait_for(wait(), 60)

    async def end(self, stopped_by: str = "end") -> None:
        """No more comes."""
        self.requests[-1].end(stopped_by=stopped_by)
        for _ in range(5):
            await asyncio.sleep(0)
