"""An engine that answers what a test writes, piece by piece, as the engine process does."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lsp_server.shared.contract.calls import Call, OnSpans
from lsp_server.shared.contract.jobs import GenerateJob, JobResult, Span
from lsp_server.shared.contract.status import EngineStatus


@dataclass(eq=False)
class WrittenAnswers:
    """``asked`` holds the jobs; ``write`` and ``end`` answer the latest of them."""

    format: str = "redraft"
    prompt_seconds: tuple[float, ...] = ()
    asked: list[GenerateJob] = field(default_factory=list)
    priorities: list[int] = field(default_factory=list)
    cancelled: int = 0
    text: str = ""

    @property
    def status(self) -> EngineStatus:
        return EngineStatus(
            state="ready",
            model="m",
            next_edit_format=self.format,
            next_edit_formats=(self.format,),
            prompt_seconds=self.prompt_seconds,
        )

    def ask(self, job: GenerateJob, client: str, on_spans: OnSpans | None, priority: int) -> Call:
        self.asked.append(job)
        self.priorities.append(priority)
        self.text = ""
        return self._call(on_spans)

    def _call(self, on_spans: OnSpans | None) -> Call:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def cancel() -> None:
            self.cancelled += 1
            if not future.done():
                future.set_result(self._result("cancelled"))

        self.call = Call(len(self.asked), 0, future, on_spans, cancel)
        return self.call

    async def write(self, text: str, likely: float = 1.0) -> None:
        """Some more of the answer, each character as likely."""
        self.text += text
        assert self.call.on_spans is not None
        self.call.on_spans([Span(one, "model", math.log(likely)) for one in text])
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
        self.call.future.set_result(self._result(stopped_by))
        for _ in range(5):
            await asyncio.sleep(0)

    def _result(self, stopped_by: str) -> JobResult:
        return JobResult(self.text, [], len(self.text), 1, 0.0, 0.0, {}, stopped_by)
