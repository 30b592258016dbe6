"""The start of a server's engine, and what looks after it."""

from __future__ import annotations

import asyncio

from lsp_server.engine.client import EngineClient
from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.errors import EngineUnavailable, ModelUnavailable

WATCH_S = 0.1


async def until_loaded(engine: EngineInterface) -> None:
    """Start the engine, and wait until it has its model. Raises EngineUnavailable, OSError."""
    await engine.start()
    while engine.status.state != "ready":
        status = engine.status
        if status.state == "failed":
            raise ModelUnavailable(status.message, status.remedy)
        if status.state == "idle":
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
