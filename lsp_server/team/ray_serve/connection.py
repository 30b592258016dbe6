"""The engine of an ingress: frames of :class:`EngineClient`, each request sent to a replica."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle

from lsp_server.shared.contract.codec import to_json
from lsp_server.shared.contract.jobs import AcceptedText, JobResult, Span
from lsp_server.shared.contract.notes import note_of
from lsp_server.shared.errors import EngineUnavailable
from lsp_server.shared.processes.background import in_background
from lsp_server.shared.processes.child import Child, OnDeath, OnFrame
from lsp_server.shared.processes.framing import Frame
from lsp_server.team.ray_serve.session import session_id

logger = logging.getLogger(__name__)

TRIES = 2
"""A request whose replica dies before it has sent any text goes to another one, once."""
DESCRIBED_EVERY_S = 10.0
"""A rolling update may change the model."""
DESCRIBED_WITHIN_S = 5.0


class ReplicasConnection(Child):
    """The replicas of an engine on Ray Serve, in place of a child process. Serve replaces those
    that die."""

    alive = False
    """A replica has answered."""

    def __init__(
        self, handle: DeploymentHandle[Any], secret: bytes, on_frame: OnFrame, on_death: OnDeath
    ) -> None:
        """``secret``: key of the HMAC that sessions are named by."""
        super().__init__("", [], on_frame, on_death)
        self._handle = handle
        self._secret = secret
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Learn of the model. Returns when a replica has answered."""
        self._on_frame(await _described(self._handle))
        self.alive = True
        if self._watching is None:
            self._watching = in_background(self._watch())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(DESCRIBED_EVERY_S)
            try:
                state = await asyncio.wait_for(_described(self._handle), DESCRIBED_WITHIN_S)
            except (RayError, RayServeException, asyncio.TimeoutError):
                lost = {"state": "loading", "message": "no replica answers"}
                state = {"event": "status", "status": lost}
            if self.alive:
                self._on_frame(state)

    def kill(self) -> None:
        """End what is under way; the replicas go on."""
        for task in list(self._tasks.values()):
            task.cancel()
        if self.alive:
            self.alive = False
            asyncio.get_running_loop().call_soon(self._on_death)

    async def close(self) -> None:
        """End what is under way; the replicas go on."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        self.kill()
        await asyncio.sleep(0)

    def send(self, frame: Frame) -> bool:
        if frame["op"] == "cancel":
            if (task := self._tasks.get(frame["id"])) is not None:
                task.cancel()
        elif "job" in frame:
            self._tasks[frame["id"]] = in_background(self._answer(frame))
        elif isinstance(note := note_of(frame), AcceptedText):
            in_background(self._tell_accepted(note))
        return self.alive

    async def _answer(self, request: Frame) -> None:
        passed_on: list[Frame] = []
        try:
            await self._ask(request, passed_on)
        except asyncio.CancelledError:
            self._tell(request, {"event": "result", "result": _cut(passed_on), "forward_s": 0.0})
        except Exception as error:
            if not isinstance(error, EngineUnavailable):
                logger.exception("a request failed")
            kind = EngineUnavailable.__name__
            self._tell(request, {"event": "error", "kind": kind, "message": str(error)})
        finally:
            del self._tasks[request["id"]]

    async def _ask(self, request: Frame, passed_on: list[Frame]) -> None:
        """Pass on a request, and again while nothing of its answer was ``passed_on``. Raises
        EngineUnavailable where the replica died."""
        handle = self._handle.options(
            method_name="answer", stream=True, session_id=session_of(request["job"], self._secret)
        )
        for _ in range(TRIES):
            answer = handle.remote(request)
            try:
                async for frames in answer:
                    passed_on += frames
                    for frame in frames:
                        self._tell(request, frame)
                if passed_on and passed_on[-1]["event"] != "spans":
                    return
            except (RayError, RayServeException) as error:
                logger.warning("a replica was lost: %s", type(error).__name__)
                if passed_on:
                    break
            finally:
                # Ends the forward where the frames were not read to their end.
                answer.cancel()
        raise EngineUnavailable("the replica ended while it worked on the request; try again")

    async def _tell_accepted(self, accepted: AcceptedText) -> None:
        session = session_of(to_json(accepted), self._secret)
        try:
            await self._handle.options(session_id=session).tell.remote(accepted)
        except (RayError, RayServeException) as error:
            # Another replica will answer, which knows no past outputs either.
            logger.warning("a replica was lost: %s", type(error).__name__)

    def _tell(self, request: Frame, frame: Frame) -> None:
        self._on_frame({**frame, "id": request["id"]})


async def _described(handle: DeploymentHandle[Any]) -> Frame:
    state: Frame = await handle.describe.remote()
    return state


def session_of(job: dict[str, Any], secret: bytes) -> str:
    """Return the session of a job: its key and its document."""
    return session_id(secret, job["owner"], job.get("path", ""))


def _cut(passed_on: list[Frame]) -> dict[str, Any]:
    spans = [span for frame in passed_on if frame["event"] == "spans" for span in frame["spans"]]
    text = "".join(span["text"] for span in spans)
    spans_so_far = [Span(span["text"], span["source"]) for span in spans]
    cut: dict[str, Any] = to_json(JobResult(text, spans_so_far, 0, 0, 0.0, 0.0, {}, "cancelled"))
    return cut
