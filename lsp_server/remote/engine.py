"""The daemon's engine at a server. While the server does not answer, the one of this machine does,
where there is one."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import posixpath
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lsp_server.contract.status import EngineStatus
from lsp_server.engine.call import Call, OnSpans
from lsp_server.engine.client import LATENCIES_KEPT
from lsp_server.engine.interface import EngineInterface
from lsp_server.engine.jobs import AcceptedText, CompletionJob, EditJob, JobResult
from lsp_server.engine.load_failure import LoadFailure
from lsp_server.engine.scheduler import COMPLETION
from lsp_server.errors import (
    EngineFailed,
    EngineUnavailable,
    ModelUnavailable,
    RedraftError,
    ServerUnavailable,
)
from lsp_server.processes.background import in_background
from lsp_server.remote.address import ServerAddress
from lsp_server.remote.back_off import BackOff
from lsp_server.remote.connection import ServerConnection
from lsp_server.remote.discovery import served_model
from lsp_server.remote.served_model import Operation, ServedModel
from lsp_server.remote.told_spans import ToldSpans
from lsp_server.settings import ServerSettings

if TYPE_CHECKING:
    from lsp_server.remote.sharing.shared_workspaces import SharedWorkspaces

logger = logging.getLogger(__name__)

NO_SECRETS = (
    "the document may hold secrets and is not sent to a server; set redraft.server.fallback or "
    "redraft.model.path for a model on this machine"
)
UNDRAFTED = "undrafted: the server is not Redraft's own"


class RemoteEngine:
    """A server's model. What is asked goes there; documents that may hold secrets stay here."""

    def __init__(
        self, server: ServerSettings, on_change: Callable[[], None], local: EngineInterface | None
    ) -> None:
        """``local``: the engine of this machine that answers while the server does not. Others may
        use it, too, and whoever made it ends it."""
        self._settings = server
        self.on_busy: Callable[[], None] = lambda: None
        self.shared: SharedWorkspaces | None = None
        """The workspaces that the server keeps a repository of."""
        self.repository_of: Callable[[str], str] = self._shared_as
        """What the server knows a workspace's repository by; empty for none."""
        self.request_count = 0
        self.latencies_s: deque[float] = deque(maxlen=LATENCIES_KEPT)
        self.cancels_s: deque[float] = deque(maxlen=LATENCIES_KEPT)
        """Nothing: a closed connection is not answered."""
        self.cancel_forwards_s: deque[float] = deque(maxlen=LATENCIES_KEPT)
        self._on_change = on_change
        self._local = local
        self._connection: ServerConnection | None = None
        self._served: ServedModel | None = None
        """The model there while the server answers."""
        self._trouble: ModelUnavailable | None = None
        """Why it does not answer."""
        self._next_try = 0.0
        self._back_off = BackOff()
        self._connecting: asyncio.Task[None] | None = None
        self._trying: asyncio.Task[None] | None = None
        self._calls: dict[int, Call] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._ids = itertools.count(1)
        self.last_used = time.monotonic()
        self._salt = secrets.token_bytes(16)
        """Of the documents' ids: they tell nothing of paths."""

    # What the user is told

    @property
    def here(self) -> EngineInterface | None:
        """The engine of this machine while it answers in the server's place."""
        return self._local if self._served is None and self._trouble is not None else None

    @property
    def status(self) -> EngineStatus:
        """The server's model, or that of this machine while it answers in the server's place."""
        known = EngineStatus(model=self._settings.url)
        if self._served is not None:
            known = replace(self._served.status, state="ready")
        elif self._trouble is None and self._connecting is not None:
            message = f"asking the server {self._settings.url}"
            known = replace(known, state="loading", message=message)
        elif self._trouble is not None and self._local is None:
            message, remedy = str(self._trouble), self._trouble.remedy
            known = replace(known, state="failed", message=message, remedy=remedy)
        elif self._local is not None and self._trouble is not None:
            here = self._local.status
            known = replace(here, message=here.message or self._note, pid=None)
        return replace(known, server=self._server, server_note=self._note)

    @property
    def _note(self) -> str:
        """That the server does not draft, or that the engine of this machine answers."""
        if self._served is not None:
            return "" if self._served.drafts else f"{self._served.status.model}, {UNDRAFTED}"
        if self.here is not None:
            return f"{self._trouble}; the model on this machine answers"
        return ""

    @property
    def failure(self) -> LoadFailure | None:
        """Why nothing answers."""
        if self._served is not None or self._trouble is None:
            return None
        if self._local is not None:
            return self._local.failure
        return LoadFailure([], self._trouble.cause, self._trouble.remedy, (), lasting=False)

    @property
    def refused(self) -> str:
        """Why requests have no chance just now; empty when they have one."""
        if self._served is not None or self._trouble is None:
            return ""
        return str(self._trouble) if self._local is None else self._local.refused

    @property
    def _server(self) -> dict[str, Any]:
        """See ``EngineStatus.server``."""
        answers = "server" if self._trouble is None else "nothing" if self.here is None else "local"
        return {
            "url": self._settings.url,
            "answers": answers,
            "drafted": self._served.drafts if self._served is not None else answers == "local",
            "reason": str(self._trouble) if self._trouble is not None else "",
            "nextTryS": round(max(0.0, self._next_try - time.monotonic()), 1)
            if self._trouble is not None
            else None,
        }

    def note_pace(self, result: JobResult, plain: bool) -> None:
        """A text was written with or without drafts."""
        if self.here is not None:
            self.here.note_pace(result, plain)

    # What the engine of this machine is told, too

    def open_workspace(self, folder: str) -> None:
        """A workspace is used from now on."""
        if self._local is not None:
            self._local.open_workspace(folder)

    def reload_index(self, folder: str, store: str) -> None:
        """Nothing: the engine of this machine is told by whoever made it."""

    def close_workspace(self, folder: str) -> None:
        """Nothing: the engine of this machine is told by whoever made it."""

    def set_buffer(
        self, folder: str, path: str, read: Callable[[], str], opened: bool = False
    ) -> None:
        """An open document changed."""
        if self._local is not None:
            self._local.set_buffer(folder, path, read, opened)
        if self.shared is not None:
            self.shared.set_buffer(folder, path, read)

    def close_buffer(self, folder: str, path: str) -> None:
        """A document was closed."""
        if self._local is not None:
            self._local.close_buffer(folder, path)
        if self.shared is not None:
            self.shared.close_buffer(folder, path)

    def forget_document(self, folder: str, path: str) -> None:
        """A document is held back."""
        if self._local is not None:
            self._local.forget_document(folder, path)

    def accepted(self, taken: AcceptedText) -> None:
        """A user took a suggestion: the server is told, too."""
        if self._local is not None:
            self._local.accepted(taken)
        if self._served is not None and not taken.secret:
            in_background(self._tell_accepted(self._served, taken))

    async def _tell_accepted(self, served: ServedModel, taken: AcceptedText) -> None:
        sent = replace(
            taken, workspace=self._workspace_there(taken.workspace), path=_relative(taken.path)
        )
        try:
            await served.accepted(sent)
        except (ServerUnavailable, EngineFailed) as error:
            # Drafts are a little worse. The next request finds out what is wrong there.
            logger.info("an accepted suggestion was not told to the server: %s", error)

    # Requests

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

    def prefill(self, job: CompletionJob | EditJob, client: str, urgency: int) -> Call:
        """Compute the prompt of a request that may come."""
        return self._call("prefill", job, client, urgency, None)

    def _call(
        self,
        operation: Operation,
        job: CompletionJob | EditJob,
        client: str,
        urgency: int,
        on_spans: OnSpans | None,
    ) -> Call:
        call_id = next(self._ids)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        call = Call(call_id, urgency, future, on_spans, lambda: self._cancel(call_id))
        self._calls[call_id] = call
        if len(self._calls) == 1:
            self.on_busy()
        self.last_used = time.monotonic()
        self.request_count += 1
        self._tasks[call_id] = in_background(self._serve(call, operation, job, client))
        return call

    def _cancel(self, call_id: int) -> None:
        """Stop a call: its connection is closed, which ends the forward there."""
        if (task := self._tasks.get(call_id)) is not None:
            call = self._calls[call_id]
            call.cancelled = time.monotonic()
            task.cancel()
            # A task that is cancelled before its first step runs no line of its coroutine.
            self._finish(call, None, None)

    async def _serve(
        self, call: Call, operation: Operation, job: CompletionJob | EditJob, client: str
    ) -> None:
        result: JobResult | None = None
        error: RedraftError | None = None
        try:
            result = await self._answer(call, operation, job, client)
        except RedraftError as raised:
            error = raised
        except Exception as raised:
            logger.exception("the server's answer cannot be used")
            error = EngineFailed(f"the server's answer cannot be used ({type(raised).__name__})")
        self._finish(call, result, error)

    def _finish(self, call: Call, result: JobResult | None, error: RedraftError | None) -> None:
        if self._calls.pop(call.id, None) is None:
            return
        del self._tasks[call.id]
        if not self._calls:
            self.on_busy()
        self.last_used = time.monotonic()
        if call.future.done():
            return
        if error is not None:
            call.future.set_exception(error)
            # A call that nobody awaits any more is no error of ours.
            call.future.exception()
            return
        if call.cancelled is None and call.urgency == COMPLETION:
            self.latencies_s.append(time.monotonic() - call.started)
        call.future.set_result(result)

    async def _answer(
        self, call: Call, operation: Operation, job: CompletionJob | EditJob, client: str
    ) -> JobResult | None:
        told = ToldSpans(call.on_spans)
        if job.secret:
            return await self._answer_here(call, operation, job, client, told, NO_SECRETS)
        if self._trouble is None:
            await self._connected()
        served = self._served
        if served is not None:
            try:
                result = await self._answer_there(served, call, operation, job, told)
            except ServerUnavailable as trouble:
                self._lost(trouble, served)
                told.begin_again()
            else:
                self._back_off.forget()
                return result
        reason = str(self._trouble) if self._trouble is not None else "the server went away"
        return await self._answer_here(call, operation, job, client, told, reason)

    async def _answer_there(
        self,
        served: ServedModel,
        call: Call,
        operation: Operation,
        job: CompletionJob | EditJob,
        told: ToldSpans,
    ) -> JobResult | None:
        """The server's answer. Raises ServerUnavailable and EngineFailed."""
        sent, document = self._sent(job), self._document(job)
        try:
            return await served.run(operation, sent, call.urgency, document, told.add)
        except EngineFailed as error:
            if error.kind != "404" or not sent.workspace or self.shared is None:
                raise
            # The repository was deleted there: what can be drafted from the prompt is enough.
            self.shared.lost(job.workspace)
            alone = replace(sent, workspace="")
            return await served.run(operation, alone, call.urgency, document, told.add)

    async def _answer_here(
        self,
        call: Call,
        operation: Operation,
        job: CompletionJob | EditJob,
        client: str,
        told: ToldSpans,
        reason: str,
    ) -> JobResult | None:
        """The answer of this machine's engine. Raises EngineUnavailable with ``reason`` where there
        is none."""
        local = self._local
        if local is None:
            raise EngineUnavailable(reason)
        if operation == "prefill":
            call_here = local.prefill(job, client, call.urgency)
        elif isinstance(job, EditJob):
            call_here = local.edit(job, client, told.add, call.urgency)
        else:
            call_here = local.complete(job, client, told.add, call.urgency)
        try:
            result = await call_here.future
        except asyncio.CancelledError:
            call_here.cancel()
            raise
        return result if isinstance(result, JobResult) else None

    def _sent(self, job: CompletionJob | EditJob) -> CompletionJob | EditJob:
        """What the server is told of a job: no path of this machine."""
        workspace = self._workspace_there(job.workspace)
        if isinstance(job, EditJob):
            return replace(job, workspace=workspace, path=_relative(job.path))
        return replace(
            job,
            workspace=workspace,
            path=_relative(job.path),
            snippets=[replace(one, path=_relative(one.path)) for one in job.snippets],
        )

    def _workspace_there(self, folder: str) -> str:
        """What a workspace is called at the server; empty for none."""
        return self.repository_of(folder) if folder else ""

    def _shared_as(self, folder: str) -> str:
        return self.shared.workspace(folder) if self.shared is not None else ""

    def _document(self, job: CompletionJob | EditJob) -> str:
        """An id by which the server knows what it computed of a document."""
        name = f"{job.workspace}\0{job.path}".encode("utf-8", "surrogateescape")
        return hashlib.blake2b(name, key=self._salt, digest_size=12).hexdigest()

    # The server

    async def start(self) -> None:
        """Have a model that answers: the server's, else that of this machine.

        Raises ModelUnavailable or OSError.
        """
        if self._trouble is None:
            await self._connected()
        if self._served is not None:
            return
        if self._local is not None:
            await self._local.start()
        elif self._trouble is not None:
            raise self._trouble

    async def _connected(self) -> None:
        """Ask the server what it has, the first time. What goes wrong is the trouble."""
        if self._served is not None:
            return
        if self._connecting is None:
            self._connecting = in_background(self._connect_first())
            self._on_change()
        await asyncio.shield(self._connecting)

    async def _connect_first(self) -> None:
        try:
            await self._connect()
        except ModelUnavailable as trouble:
            self._lost(trouble, None)
        finally:
            self._connecting = None

    async def _connect(self) -> None:
        if self._connection is None:
            address = ServerAddress.of(self._settings.url)
            self._connection = ServerConnection(address, self._settings.key)
        self._served = await served_model(self._connection, self._settings.model)
        self._trouble = None
        logger.info("the server %s answers with %s", self._settings.url, self._served.status.model)
        self._on_change()

    def _lost(self, trouble: ModelUnavailable, served: ServedModel | None) -> None:
        """The server does not answer; ``served``: what was asked. It is tried again later."""
        if self._served is not served or self._trouble is not None:
            return
        self._served = None
        self._set_trouble(trouble)
        if isinstance(trouble, ServerUnavailable):
            self._trying = in_background(self._try_again())

    def _set_trouble(self, trouble: ModelUnavailable) -> None:
        wanted_s = trouble.retry_after_s if isinstance(trouble, ServerUnavailable) else 0.0
        self._trouble = trouble
        self._next_try = time.monotonic() + self._back_off.next_s(wanted_s)
        logger.warning("%s", trouble.cause)
        self._on_change()

    async def _try_again(self) -> None:
        """Ask after 1, 2, 4 … 60 s until the server answers."""
        while self._served is None:
            await asyncio.sleep(max(0.0, self._next_try - time.monotonic()))
            try:
                await self._connect()
            except ModelUnavailable as trouble:
                self._set_trouble(trouble)
        self._trying = None

    @property
    def busy(self) -> bool:
        """A request is under way."""
        return bool(self._calls)

    @property
    def queue_length(self) -> int:
        """Requests that are under way."""
        return len(self._calls)

    @property
    def stopping(self) -> int:
        """None: a closed connection is not answered."""
        return 0

    pid = None
    """No process."""
    hung = False
    """A connection that is silent for long ends by itself."""

    def restart(self) -> None:
        """Nothing: there is no process."""

    def unload(self) -> None:
        """Nothing: there is no process."""

    def rest(self) -> None:
        """Nobody wants the server: it is not asked until somebody does."""
        if self._trying is not None and not self.busy:
            self._trying.cancel()
            self._trying = self._trouble = None
            self._back_off.forget()

    async def close(self) -> None:
        """End all connections."""
        for task in [*self._tasks.values(), self._trying, self._connecting]:
            if task is not None:
                task.cancel()
        if self._connection is not None:
            await self._connection.close()


def _relative(path: str) -> str:
    """A path that tells nothing of this machine: one below its workspace stays as it is."""
    outside = path.startswith(("/", "~", "..")) or "\\" in path or ":" in path
    return posixpath.basename(path.replace("\\", "/")) if outside else path
