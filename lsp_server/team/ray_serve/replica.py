"""One replica: an engine process, and the requests that the router sends to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from lsp_server.engine.client import EngineClient
from lsp_server.shared.contract.codec import to_json
from lsp_server.shared.contract.jobs import Span, job_of
from lsp_server.shared.contract.notes import Note
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.errors import EngineFailed, EngineUnavailable, ModelUnavailable
from lsp_server.shared.processes.framing import Frame

TICK_S = 0.05
"""Between two pieces of a text that is written."""


class EngineReplica:
    """Ray Serve's side of an engine process. It is healthy once its model is loaded."""

    # Serve awaits it: until then the replica gets no request.
    async def __init__(self, options: EngineOptions) -> None:  # type: ignore[misc]
        """Raise EngineUnavailable where the model cannot be loaded; Serve tells it."""
        self._settled = asyncio.Event()
        self._engine = EngineClient(options, self._changed)
        await self._engine.start()
        await self._settled.wait()
        status = self._engine.status
        if status.state == "failed":
            # One argument: exceptions with two do not travel to the controller.
            raise EngineUnavailable(str(ModelUnavailable(status.message, status.remedy)))

    def _changed(self) -> None:
        if self._engine.status.state in ("ready", "failed"):
            self._settled.set()

    def check_health(self) -> None:
        """Called by Serve, which replaces a replica that raises. Raises EngineUnavailable where the
        engine hangs, ended, or has no model any more."""
        if self._engine.hung:
            raise EngineUnavailable("the engine hangs; the replica is replaced")
        if self._engine.status.state in ("idle", "failed"):
            raise EngineUnavailable("the engine ended; the replica is replaced")

    async def describe(self) -> Frame:
        """Return the status frame of the engine, and how many requests it has."""
        status = replace(self._engine.status, state="ready", message="")
        queue = self._engine.calls.queue_length
        return {"event": "status", "status": to_json(status), "queue_length": queue}

    async def tell(self, note: Note) -> None:
        self._engine.tell(note)

    async def answer(self, request: Frame) -> AsyncIterator[list[Frame]]:
        """Yield the engine's frames for ``request``. Cancelling the stream ends the forward."""
        frames: asyncio.Queue[Frame] = asyncio.Queue()

        def told(spans: list[Span]) -> None:
            frames.put_nowait({"event": "spans", "spans": to_json(spans)})

        job, client, priority = job_of(request), request["client"], request["urgency"]
        if request["op"] == "prefill":
            call = self._engine.prefill(job, client, priority)
        else:
            call = self._engine.ask(job, client, told, priority)
        call.future.add_done_callback(lambda future: frames.put_nowait(_end(future)))
        try:
            async for together in gathered(frames):
                yield together
        finally:
            if not call.future.done():
                call.cancel()

    async def __del__(self) -> None:
        """Called by Serve when the requests of the replica have ended."""
        if hasattr(self, "_engine"):
            await self._engine.close()


async def gathered(frames: asyncio.Queue[Frame]) -> AsyncIterator[list[Frame]]:
    """Frames until the end of a request: text every :data:`TICK_S`, the last with the end. Each
    item costs as much as some forwards of a small model, and a fixed beat does not tell how well
    drafts were accepted."""
    clock = asyncio.get_running_loop().time
    spans: list[Any] = []
    due = 0.0
    while True:
        try:
            wait_s = max(0.0, due - clock()) if spans else None
            frame = await asyncio.wait_for(frames.get(), wait_s)
        except asyncio.TimeoutError:
            yield [{"event": "spans", "spans": spans}]
            spans = []
            continue
        if frame["event"] == "spans":
            due = due if spans else clock() + TICK_S
            spans += frame["spans"]
            continue
        yield [*([{"event": "spans", "spans": spans}] if spans else []), frame]
        return


def _end(future: asyncio.Future[Any]) -> Frame:
    error = future.exception()
    if error is None:
        return {"event": "result", "result": to_json(future.result()), "forward_s": 0.0}
    kind = error.kind if isinstance(error, EngineFailed) else EngineUnavailable.__name__
    return {"event": "error", "kind": kind, "message": str(error)}
