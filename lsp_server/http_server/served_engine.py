"""What the application needs of an engine: a process of this machine, or replicas of one."""

from __future__ import annotations

import asyncio
from typing import Protocol

from lsp_server.engine.call import Call, OnSpans
from lsp_server.engine.client import EngineClient
from lsp_server.engine.interface import RequestedEngine
from lsp_server.engine.jobs import AnyJob, GenerateJob
from lsp_server.errors import EngineUnavailable, ModelUnavailable

WATCH_S = 0.1


class ServedEngine(RequestedEngine, Protocol):
    """A model that goes on from any prompt, too. :class:`lsp_server.engine.client.EngineClient` is
    one."""

    def generate(
        self, job: GenerateJob, client: str, on_spans: OnSpans | None, urgency: int
    ) -> Call:
        """Ask for what comes after a prompt; the future holds a JobResult."""

    def prefill(self, job: AnyJob, client: str, urgency: int) -> Call:
        """Compute the prompt of a request that may come."""


async def until_loaded(engine: ServedEngine) -> None:
    """Start the engine, and wait until it has its model. Raises EngineUnavailable, OSError."""
    await engine.start()
    while engine.status.state != "ready":
        if engine.failure is not None:
            raise engine.failure.error
        if engine.status.state == "idle":
            raise EngineUnavailable("the engine ended while it started; its log says why")
        await asyncio.sleep(WATCH_S)


async def watch(engine: EngineClient) -> None:
    """End an engine that hangs; start one that ended, before the next request needs it."""
    while True:
        await asyncio.sleep(WATCH_S)
        if engine.hung:
            engine.restart()
        if engine.status.state == "idle" and not engine.refused:
            try:
                await engine.start()
            except (ModelUnavailable, OSError):
                continue
