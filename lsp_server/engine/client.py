"""The daemon's side of an engine process: requests as futures, and a new process when one dies."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from accel.errors import HOW_TO_CHOOSE, NO_MODEL
from lsp_server.engine.kv_folder import forget_everywhere
from lsp_server.engine.load_failure import LoadFailure
from lsp_server.engine.model_paths import check_model, files_state
from lsp_server.shared.contract.calls import Call, Calls, OnSpans
from lsp_server.shared.contract.codec import read, to_json
from lsp_server.shared.contract.jobs import COMPLETION, PREFILL, AnyJob, JobResult, Span
from lsp_server.shared.contract.notes import (
    CloseBuffer,
    CloseWorkspace,
    ForgetDocument,
    Note,
    OpenWorkspace,
    ReloadIndex,
    SetBuffer,
    note_frame,
)
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.contract.status import EngineStatus, State
from lsp_server.shared.errors import EngineFailed, EngineUnavailable, MemoryTaken, ModelUnavailable
from lsp_server.shared.processes.background import in_background
from lsp_server.shared.processes.child import Child, OnDeath, OnFrame
from lsp_server.shared.processes.framing import Frame
from operating_system.folders import log_folder

logger = logging.getLogger(__name__)

HUNG_S, START_S = 90.0, 5.0


def hung_after_s() -> float:
    """Return seconds without a sign of an engine that has work before it counts as hung."""
    return float(os.environ.get("REDRAFT_HUNG_S", HUNG_S))


async def _grant_nothing() -> None:
    return None


class EngineClient:
    """One engine process, started at the first request and restarted after its death. The state of
    its ``status``: ``idle`` (no process), ``loading``, ``ready`` or ``failed``."""

    def __init__(
        self,
        options: EngineOptions,
        on_change: Callable[[], None],
        connect: Callable[[OnFrame, OnDeath], Child] | None = None,
    ) -> None:
        """``connect``: makes the way to an engine that is no child process of this one."""
        self.options = options
        self.failure: LoadFailure | None = None
        """Why there was no model at the last try."""
        self.status = EngineStatus(model=options.path or "none", dtype=options.dtype)
        if not options.path and connect is None:
            missing = files_state(*options.models)
            self.failure = LoadFailure(options.models, NO_MODEL, HOW_TO_CHOOSE, missing)
            self.status = replace(
                self.status, state="failed", message=NO_MODEL, remedy=HOW_TO_CHOOSE
            )
        self.calls = Calls()
        self.grant_memory: Callable[[], Awaitable[None]] = _grant_nothing
        """Awaited before a process is started. May raise ModelUnavailable."""
        self.memory_bytes = 0
        """What a process was granted; 0 without one."""
        self.last_heard = time.monotonic()
        self._pace_s: dict[bool, float] = {}
        """Seconds for each token, by whether it was decoded plainly."""
        self._on_change = on_change
        if connect is not None:
            self._child = connect(self._receive, self._died)
        else:
            module, arguments = "lsp_server.engine.process", [json.dumps(to_json(options))]
            self._child = Child(module, arguments, self._receive, self._died)
        self._starting: asyncio.Task[None] | None = None
        self._workspaces: dict[str, OpenWorkspace] = {}
        self._buffers: dict[tuple[str, str], Callable[[], str]] = {}
        self._dirty: dict[tuple[str, str], None] = {}
        self._unloading = False
        self._why_unloaded = "unloaded"
        self._files: tuple[object, ...] = ()
        """The model's files when the process was started."""

    # What the engine knows

    def tell(self, note: Note) -> None:
        """Something of a workspace or a document is another way now. Workspaces are opened in later
        processes, too."""
        if isinstance(note, OpenWorkspace):
            self._workspaces[note.folder] = note
        elif isinstance(note, CloseWorkspace):
            self._workspaces.pop(note.folder, None)
        elif isinstance(note, ReloadIndex) and note.folder not in self._workspaces:
            return
        elif isinstance(note, CloseBuffer):
            self._buffers.pop((note.folder, note.path), None)
            self._dirty.pop((note.folder, note.path), None)
        elif isinstance(note, ForgetDocument):
            forget_everywhere(note.folder, note.path)
        self._child.send(note_frame(note))

    def set_buffer(
        self, folder: str, path: str, read: Callable[[], str], opened: bool = False
    ) -> None:
        """An open document changed; ``read`` gives its text, sent with the next request. That of
        one that was ``opened`` is sent at once: many sent together would hold others up."""
        self._buffers[folder, path] = read
        self._dirty[folder, path] = None
        if opened and self._child.alive:
            self._send_buffer(folder, path)

    # Requests

    def ask(
        self, job: AnyJob, client: str, on_spans: OnSpans | None = None, priority: int = COMPLETION
    ) -> Call:
        return self._call(job.operation, job, client, priority, on_spans)

    def prefill(self, job: AnyJob, client: str, priority: int = PREFILL) -> Call:
        return self._call("prefill", job, client, priority, None)

    def _call(
        self, operation: str, job: AnyJob, client: str, priority: int, on_spans: OnSpans | None
    ) -> Call:
        call = self.calls.begin(priority, on_spans, self._cancel)
        if self.refused:
            assert self.failure is not None
            self.calls.finish(call, error=self.failure.error)
            return call
        frame = {
            "op": operation,
            "kind": job.operation,
            "job": to_json(job),
            "id": call.id,
            "client": client,
            "urgency": priority,
            "heard": on_spans is not None,
        }
        if self._child.alive:
            self._send_job(frame)
        else:
            in_background(self._send_when_started(call, frame))
        return call

    async def _send_when_started(self, call: Call, frame: Frame) -> None:
        error: Exception = EngineUnavailable("the engine does not run")
        try:
            await self.start()
            if self.calls.find(call.id) is None or self._send_job(frame):
                return
        except ModelUnavailable as raised:
            error = raised
        except OSError as raised:
            error = EngineUnavailable(f"the engine cannot start: {raised}")
        self.calls.finish(call, error=error)

    def _send_job(self, frame: Frame) -> bool:
        for folder, path in list(self._dirty):
            self._send_buffer(folder, path)
        return self._child.send(frame)

    def _send_buffer(self, folder: str, path: str) -> None:
        del self._dirty[folder, path]
        text = self._buffers[folder, path]()
        self._child.send(note_frame(SetBuffer(folder, path, text)))

    def _cancel(self, call: Call) -> None:
        """Stop a call; the engine answers within a forward, which the caller does not await."""
        if not self._child.send({"op": "cancel", "id": call.id}):
            error = EngineUnavailable("cancelled before the engine was up")
            self.calls.finish(call, error=error)

    def note_pace(self, result: JobResult, plain: bool) -> None:
        if result.tokens:
            self._pace_s[plain] = result.seconds / result.tokens
        if len(self._pace_s) == 2 and self._pace_s[False]:
            speedup = round(self._pace_s[True] / self._pace_s[False], 2)
            self.status = replace(self.status, speedup=speedup)

    @property
    def refused(self) -> str:
        if self.status.state != "failed" or self.failure is None or not self.failure.holds:
            return ""
        return str(self.failure.error)

    # The process

    async def start(self) -> None:
        """Have a process, after a death with back-off. Returns when frames can be sent.

        Raises ModelUnavailable, without a process, where the model's path or headers show that it
        cannot be loaded.
        """
        if self._child.alive:
            return
        if self._starting is None or self._starting.done():
            self._starting = asyncio.ensure_future(self._start())
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        await self._check_model()
        await self._await_memory()
        try:
            await asyncio.sleep(self._child.back_off_s)
            self._change("loading", "loading the model")
            await self._child.start()
        except BaseException:
            self.memory_bytes = 0
            raise
        for opened in self._workspaces.values():
            self._child.send(note_frame(opened))
        self._dirty = dict.fromkeys(self._buffers)
        for folder, path in list(self._dirty):
            if (folder, path) in self._dirty:
                self._send_buffer(folder, path)
                await asyncio.sleep(0)

    async def _check_model(self) -> None:
        # Not on this thread: a folder may be on a disk that is far away.
        self._files = await asyncio.to_thread(files_state, *self.options.models)
        try:
            for model in self.options.models:
                await asyncio.to_thread(check_model, model)
        except ModelUnavailable as error:
            self._fail(error.cause, error.remedy)
            raise

    async def _await_memory(self) -> None:
        try:
            await self.grant_memory()
        except MemoryTaken as error:
            self._change("idle", str(error))
            raise
        except ModelUnavailable as error:
            self._fail(error.cause, error.remedy, lasting=False)
            raise

    def try_again(self) -> None:
        """Load the model again if its loading failed: the cause may be gone."""
        if self.status.state == "failed" and self.failure is not None and not self.failure.lasting:
            self.failure = None
            self._change("idle", "")

    async def unload_for(self, other: str) -> None:
        """End the process, and wait for its end, so that ``other`` has room."""
        self._why_unloaded = f"unloaded to make room for {other}; the next request loads it again"
        await self.close()

    def unload(self) -> None:
        """End the process and give its memory back; the next request starts another."""
        if self._child.alive:
            self._unloading = True
            self._child.kill()

    async def close(self) -> None:
        """End the process, and one that is being started."""
        self._unloading = True
        if self._starting is not None:
            # asyncio may wait for ever for a process whose start is cancelled.
            await asyncio.wait({self._starting}, timeout=START_S)
        await self._child.close()

    @property
    def pid(self) -> int | None:
        """Process id of the engine."""
        return self._child.pid if self._child.alive else None

    def _died(self) -> None:
        self.memory_bytes = 0
        if self.status.state == "failed":
            self.status = replace(self.status, pid=None)
            return
        if self.status.state == "loading" and self._child.deaths > 1 and not self._unloading:
            self._fail(
                "the engine process ended while it loaded the model, again",
                f"choose a smaller model, or see what is said in {log_folder()}",
                lasting=False,
            )
            return
        self.calls.fail_all(
            EngineUnavailable("the engine process ended; the next request starts it again")
        )
        if self._unloading:
            self._unloading = False
            self._child.forgive()
            self._change("idle", self._why_unloaded)
            self._why_unloaded = "unloaded"
        else:
            logger.warning("the engine process died")
            self._change("idle", "the engine process died; the next request starts it again")

    # Frames

    @property
    def hung(self) -> bool:
        """True if requests wait and the engine has been silent too long."""
        if self.status.state != "ready" or not self.calls.busy:
            return False
        since = max(self.last_heard, self.calls.oldest_started)
        return time.monotonic() - since > hung_after_s()

    def restart(self) -> None:
        """End a process that hangs: its requests fail, the next one starts another."""
        logger.warning("the engine process %s hangs and is ended", self.pid)
        self._child.kill()

    def _receive(self, frame: Frame) -> None:
        self.last_heard = time.monotonic()
        event = frame["event"]
        if event == "status":
            self._updated(frame["status"])
            return
        call = self.calls.find(frame["id"]) if frame["id"] is not None else None
        if event == "spans" and call is not None and call.on_spans is not None:
            call.on_spans([read(Span, span, unknown="ignored") for span in frame["spans"]])
        elif event == "result":
            values = frame["result"]
            result = None if values is None else read(JobResult, values, unknown="ignored")
            self.calls.finish(call, result, forward_s=frame["forward_s"])
        elif event == "error":
            self.calls.finish(call, error=_error_of(frame))

    def _updated(self, changes: dict[str, Any]) -> None:
        values = {**to_json(self.status), "message": "", **changes}
        status = read(EngineStatus, values, unknown="ignored")
        if status.state == "failed":
            self._fail(status.message, status.remedy, status.lasting)
            return
        if status.state == "ready":
            self.failure = None
            self._child.forgive()
        self.status = status
        self._change(status.state, status.message)

    def _fail(self, cause: str, remedy: str, lasting: bool = True) -> None:
        logger.warning("the model cannot be loaded: %s", cause)
        self.failure = LoadFailure(self.options.models, cause, remedy, self._files, lasting)
        self._change("failed", cause, remedy, lasting)
        self.calls.fail_all(self.failure.error)

    def _change(self, state: State, message: str, remedy: str = "", lasting: bool = False) -> None:
        self.status = replace(
            self.status, state=state, message=message, remedy=remedy, lasting=lasting, pid=self.pid
        )
        self._on_change()


def _error_of(frame: Frame) -> Exception:
    if frame["kind"] == EngineUnavailable.__name__:
        return EngineUnavailable(frame["message"])
    return EngineFailed(frame["message"], frame["kind"])
