"""One replica: an engine process, and the requests that the router sends to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from lsp_server.engine.call import Call
from lsp_server.engine.client import EngineClient
from lsp_server.engine.jobs import CompletionJob, EditJob, JobResult
from lsp_server.engine.key import EngineKey
from lsp_server.errors import EngineFailed, EngineUnavailable, RedraftError
from lsp_server.ray_serve.frames import (
    FailureFrame,
    FinalFrame,
    ReplicaFrame,
    ReplicaState,
    SpansFrame,
)

Job = CompletionJob | EditJob
Frames = AsyncIterator[ReplicaFrame]


class EngineReplica:
    """Ray Serve's side of an engine process. It is healthy once its model is loaded."""

    # Serve awaits it: until then the replica gets no request.
    async def __init__(self, key: EngineKey) -> None:  # type: ignore[misc]
        """Raises EngineUnavailable where the model cannot be loaded; Serve tells it."""
        self._settled = asyncio.Event()
        self._engine = EngineClient(key, self._changed)
        await self._engine.start()
        await self._settled.wait()
        if self._engine.failure is not None:
            # One argument: exceptions with two do not travel to the controller.
            raise EngineUnavailable(str(self._engine.failure.error))

    def _changed(self) -> None:
        if self._engine.state in ("ready", "failed"):
            self._settled.set()

    def check_health(self) -> None:
        """Called by Serve, which replaces a replica that raises.

        Raises EngineUnavailable where the engine hangs or has no model any more.
        """
        if self._engine.hung:
            raise EngineUnavailable("the engine hangs; the replica is replaced")
        if self._engine.refused:
            raise EngineUnavailable(self._engine.refused)

    async def describe(self) -> ReplicaState:
        """The model and what is under way."""
        engine = self._engine
        return ReplicaState(
            engine.model,
            engine.dtype,
            engine.fills,
            engine.prompt_length.seconds,
            engine.pid or 0,
            engine.queue_length,
        )

    async def complete(self, job: CompletionJob, client: str, urgency: int) -> Frames:
        """The frames of a completion. A cancel of the stream ends the forward."""
        frames: asyncio.Queue[ReplicaFrame] = asyncio.Queue()
        call = self._engine.complete(
            job, client, lambda spans: frames.put_nowait(SpansFrame(spans)), urgency
        )
        async for frame in _frames(call, frames):
            yield frame

    async def edit(self, job: EditJob, client: str, urgency: int) -> Frames:
        """The frames of an edit. A cancel of the stream ends the forward."""
        frames: asyncio.Queue[ReplicaFrame] = asyncio.Queue()
        call = self._engine.edit(
            job, client, lambda spans: frames.put_nowait(SpansFrame(spans)), urgency
        )
        async for frame in _frames(call, frames):
            yield frame

    async def prefill(self, job: Job, client: str, urgency: int) -> Frames:
        """Compute a prompt; the one frame is its end."""
        async for frame in _frames(self._engine.prefill(job, client, urgency), asyncio.Queue()):
            yield frame

    async def __del__(self) -> None:
        """Called by Serve when the requests of the replica have ended."""
        if hasattr(self, "_engine"):
            await self._engine.close()


async def _frames(call: Call, frames: asyncio.Queue[ReplicaFrame]) -> Frames:
    """What ``frames`` gets while a call is under way, then its end. Left early, the call ends."""
    call.future.add_done_callback(lambda future: frames.put_nowait(_end(future)))
    try:
        while isinstance(frame := await frames.get(), SpansFrame):
            yield frame
        yield frame
    finally:
        if not call.future.done():
            call.cancel()


def _end(future: asyncio.Future[object]) -> ReplicaFrame:
    error = future.exception()
    if error is None:
        result = future.result()
        return FinalFrame(result if isinstance(result, JobResult) else None)
    if isinstance(error, EngineFailed):
        return FailureFrame(error.kind, str(error))
    assert isinstance(error, RedraftError), error
    return FailureFrame("", str(error))
