"""The engine of the application: requests of :class:`EngineClient`, each sent to a replica."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from typing import Any

from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle, DeploymentResponseGenerator

from lsp_server.background import in_background
from lsp_server.engine.call import Call, OnSpans
from lsp_server.engine.jobs import CompletionJob, EditJob, JobResult, Span
from lsp_server.engine.prompt_length import PromptLength
from lsp_server.engine.scheduler import COMPLETION
from lsp_server.errors import EngineFailed, EngineUnavailable
from lsp_server.ray_serve.frames import (
    FailureFrame,
    FinalFrame,
    ReplicaFrame,
    ReplicaState,
    SpansFrame,
)
from lsp_server.ray_serve.session import session_id

logger = logging.getLogger(__name__)

TRIES = 2
"""A request whose replica dies before it has sent any text goes to another one, once."""
DESCRIBED_EVERY_S = 10.0
"""A rolling update may change the model."""
DESCRIBED_WITHIN_S = 5.0
"""A replica that does not say in so long what it is counts as none."""

Job = CompletionJob | EditJob


class EngineReplicas:
    """Replicas of an engine on Ray Serve, used as one :class:`EngineClient` is.

    ``client`` of a request is the name of its key: with the repository it makes the session.
    """

    def __init__(self, handle: DeploymentHandle[Any], secret: bytes) -> None:
        """``secret``: key of the HMAC that sessions are named by."""
        self.state = "loading"
        self.message = "waiting for a replica"
        self.model = ""
        self.dtype = ""
        self.fills = True
        self.prompt_length = PromptLength([])
        self._handle = handle
        self._secret = secret
        self._calls: dict[int, Call] = {}
        self._ids = itertools.count(1)
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Learn of the model. Returns when a replica has answered."""
        await self._describe()
        if self._watching is None:
            self._watching = in_background(self._watch())

    async def close(self) -> None:
        """End the requests that are under way. The replicas go on."""
        if self._watching is not None:
            self._watching.cancel()
        for call in list(self._calls.values()):
            call.cancel()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(DESCRIBED_EVERY_S)
            try:
                await asyncio.wait_for(self._describe(), DESCRIBED_WITHIN_S)
            except (RayError, RayServeException, asyncio.TimeoutError):
                self.state, self.message = "loading", "no replica answers"

    async def _describe(self) -> None:
        told: ReplicaState = await self._handle.describe.remote()
        self.model, self.dtype, self.fills = told.model, told.dtype, told.fills
        self.prompt_length = PromptLength(told.prompt_seconds)
        self.state, self.message = "ready", ""

    @property
    def queue_length(self) -> int:
        """Requests of this ingress that are under way or wait."""
        return len(self._calls)

    @property
    def busy(self) -> bool:
        """A request is under way."""
        return bool(self._calls)

    def complete(
        self,
        job: CompletionJob,
        client: str,
        on_spans: OnSpans | None = None,
        urgency: int = COMPLETION,
    ) -> Call:
        """Ask for a completion; the future holds a JobResult."""
        return self._call("complete", job, client, urgency, on_spans)

    def edit(self, job: EditJob, client: str, on_spans: OnSpans | None, urgency: int) -> Call:
        """Ask for an edit; the future holds a JobResult."""
        return self._call("edit", job, client, urgency, on_spans)

    def prefill(self, job: Job, client: str, urgency: int) -> Call:
        """Compute the prompt of a request that may come."""
        return self._call("prefill", job, client, urgency, None)

    def _call(
        self, operation: str, job: Job, client: str, urgency: int, on_spans: OnSpans | None
    ) -> Call:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        call = Call(next(self._ids), urgency, future, on_spans, lambda: self._cancel(call, task))
        self._calls[call.id] = call
        task = in_background(self._answer(call, operation, job, client))
        return call

    def _cancel(self, call: Call, task: asyncio.Task[None]) -> None:
        call.cancelled = time.monotonic()
        task.cancel()

    async def _answer(self, call: Call, operation: str, job: Job, client: str) -> None:
        sent: list[Span] = []
        try:
            result = await self._result(call, operation, job, client, sent)
            if not call.future.done():
                call.future.set_result(result)
        except asyncio.CancelledError:
            if not call.future.done():
                call.future.set_result(_cut(sent, call))
        except Exception as error:
            if not isinstance(error, EngineFailed | EngineUnavailable):
                logger.exception("a request failed")
                error = EngineUnavailable("the server failed; try again")
            if not call.future.done():
                call.future.set_exception(error)
                # A call that nobody awaits any more is no error of ours.
                call.future.exception()
        finally:
            del self._calls[call.id]

    async def _result(
        self, call: Call, operation: str, job: Job, client: str, sent: list[Span]
    ) -> JobResult | None:
        """The end of a request, tried again while nothing was ``sent``.

        Raises EngineFailed with the engine's own error, EngineUnavailable where the replica died.
        """
        handle = self._handle.options(
            method_name=operation,
            stream=True,
            session_id=session_id(self._secret, client, job.workspace),
        )
        for _ in range(TRIES):
            frames = handle.remote(job, client, call.urgency)
            try:
                return await _read(frames, call, sent)
            except (RayError, RayServeException) as error:
                logger.warning("a replica was lost: %s", type(error).__name__)
                if sent:
                    break
            finally:
                # Ends the forward where the frames were not read to their end.
                frames.cancel()
        raise EngineUnavailable("the replica ended while it worked on the request; try again")


async def _read(
    frames: DeploymentResponseGenerator[ReplicaFrame], call: Call, sent: list[Span]
) -> JobResult | None:
    async for frame in frames:
        if isinstance(frame, SpansFrame):
            sent += frame.spans
            if call.on_spans is not None:
                call.on_spans(frame.spans)
        elif isinstance(frame, FinalFrame):
            return frame.result
        else:
            assert isinstance(frame, FailureFrame)
            if frame.kind:
                raise EngineFailed(frame.message, frame.kind)
            raise EngineUnavailable(frame.message)
    raise EngineUnavailable("the replica ended before its answer; try again")


def _cut(sent: list[Span], call: Call) -> JobResult:
    """The result of a cancelled request."""
    text = "".join(span.text for span in sent)
    return JobResult(text, sent, 0, 0, time.monotonic() - call.started, 0.0, {}, "cancelled")
