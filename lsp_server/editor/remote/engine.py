"""The daemon's engine at a server. While the server does not answer, the one of this machine does,
where there is one."""

from __future__ import annotations

import asyncio
import logging
import posixpath
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lsp_server.editor.remote.address import ServerAddress
from lsp_server.editor.remote.connection import ServerConnection
from lsp_server.editor.remote.discovery import Transport, served_model
from lsp_server.editor.remote.resumed_spans import ResumedSpans
from lsp_server.shared.contract.calls import Call, Calls, OnSpans
from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import (
    COMPLETION,
    PREFILL,
    AcceptedText,
    AnyJob,
    CompletionJob,
    ContextSnippet,
    EditJob,
    GenerateJob,
    JobResult,
)
from lsp_server.shared.contract.notes import CloseWorkspace, Note, ReloadIndex
from lsp_server.shared.contract.status import EngineStatus
from lsp_server.shared.errors import (
    EngineFailed,
    EngineUnavailable,
    ModelUnavailable,
    RedraftError,
    ServerUnavailable,
)
from lsp_server.shared.processes.back_off import BackOff
from lsp_server.shared.processes.background import in_background
from lsp_server.shared.settings import ServerSettings

if TYPE_CHECKING:
    from lsp_server.editor.remote.similar import SimilarText

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
        """``local``: the engine of this machine that answers while the server does not. The hub
        shares it with others and ends it."""
        self._settings = server
        self.calls = Calls()
        self.similar: SimilarText | None = None
        """Text of other files that goes along with requests to Redraft's own server."""
        self._on_change = on_change
        self._local = local
        self._connection: ServerConnection | None = None
        self._served: Transport | None = None
        """The model there while the server answers."""
        self._trouble: ModelUnavailable | None = None
        """Why it does not answer."""
        self._next_try = 0.0
        self._back_off = BackOff()
        self._connecting: asyncio.Task[None] | None = None
        self._trying: asyncio.Task[None] | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}

    # What the user is told

    @property
    def here(self) -> EngineInterface | None:
        """The engine of this machine while it answers in the server's place."""
        return self._local if self._served is None and self._trouble is not None else None

    @property
    def status(self) -> EngineStatus:
        """The server's model, or that of this machine while it answers in the server's place."""
        status = EngineStatus(model=self._settings.url)
        if self._served is not None:
            status = replace(self._served.status, state="ready")
        elif self._trouble is None and self._connecting is not None:
            message = f"asking the server {self._settings.url}"
            status = replace(status, state="loading", message=message)
        elif self._trouble is not None and self._local is None:
            message, remedy = self._trouble.cause, self._trouble.remedy
            status = replace(status, state="failed", message=message, remedy=remedy)
        elif self._local is not None and self._trouble is not None:
            here = self._local.status
            status = replace(here, message=here.message or self._note, pid=None)
        return replace(status, server=self._server, server_note=self._note)

    @property
    def _note(self) -> str:
        """That the server does not draft, or that the engine of this machine answers."""
        if self._served is not None:
            return "" if self._served.drafts else f"{self._served.status.model}, {UNDRAFTED}"
        if self.here is not None:
            return f"{self._trouble}; the model on this machine answers"
        return ""

    @property
    def refused(self) -> str:
        if self._served is not None or self._trouble is None:
            return ""
        return str(self._trouble) if self._local is None else self._local.refused

    @property
    def _server(self) -> dict[str, Any]:
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

    def tell(self, note: Note) -> None:
        if isinstance(note, ReloadIndex | CloseWorkspace):
            # The engine of this machine is told by whoever made it.
            return
        if self._local is not None:
            self._local.tell(note)
        if isinstance(note, AcceptedText) and self._served is not None and not note.secret:
            in_background(self._tell_accepted(self._served, note))

    def set_buffer(
        self, folder: str, path: str, read: Callable[[], str], opened: bool = False
    ) -> None:
        """An open document changed."""
        if self._local is not None:
            self._local.set_buffer(folder, path, read, opened)

    async def _tell_accepted(self, served: Transport, accepted: AcceptedText) -> None:
        sent = replace(accepted, workspace="", path=_relative(accepted.path))
        try:
            await served.accepted(sent)
        except (ServerUnavailable, EngineFailed) as error:
            # Drafts are a little worse. The next request finds out what is wrong there.
            logger.info("an accepted suggestion was not told to the server: %s", error)

    # Requests

    def ask(
        self, job: AnyJob, client: str, on_spans: OnSpans | None = None, priority: int = COMPLETION
    ) -> Call:
        return self._call(job, client, on_spans, priority, is_prefill=False)

    def prefill(self, job: AnyJob, client: str, priority: int = PREFILL) -> Call:
        return self._call(job, client, None, priority, is_prefill=True)

    def _call(
        self, job: AnyJob, client: str, on_spans: OnSpans | None, priority: int, is_prefill: bool
    ) -> Call:
        assert not isinstance(job, GenerateJob), "editors complete and edit"
        call = self.calls.begin(priority, on_spans, self._cancel)
        self._tasks[call.id] = in_background(self._serve(call, job, client, is_prefill))
        return call

    def _cancel(self, call: Call) -> None:
        """Stop a call: its connection is closed, which ends the forward there."""
        self._tasks[call.id].cancel()
        # A task that is cancelled before its first step runs no line of its coroutine.
        self._finish(call)

    async def _serve(
        self, call: Call, job: CompletionJob | EditJob, client: str, is_prefill: bool
    ) -> None:
        result: JobResult | None = None
        error: RedraftError | None = None
        try:
            result = await self._answer(call, job, client, is_prefill)
        except RedraftError as raised:
            error = raised
        except Exception as raised:
            logger.exception("the server's answer cannot be used")
            error = EngineFailed(f"the server's answer cannot be used ({type(raised).__name__})")
        self._finish(call, result, error)

    def _finish(
        self, call: Call, result: JobResult | None = None, error: RedraftError | None = None
    ) -> None:
        self._tasks.pop(call.id, None)
        self.calls.finish(call, result, error)

    async def _answer(
        self, call: Call, job: CompletionJob | EditJob, client: str, is_prefill: bool
    ) -> JobResult | None:
        resumed = ResumedSpans(call.on_spans)
        if job.secret:
            return await self._answer_here(call, job, client, resumed, NO_SECRETS, is_prefill)
        if self._trouble is None:
            await self._connected()
        served = self._served
        if served is not None:
            try:
                sent = self._sent(job, served)
                result = await served.ask(sent, call.priority, resumed.add, is_prefill)
            except ServerUnavailable as trouble:
                self._lost(trouble, served)
                resumed.begin_again()
            else:
                self._back_off.forget()
                return result
        reason = str(self._trouble) if self._trouble is not None else "the server went away"
        return await self._answer_here(call, job, client, resumed, reason, is_prefill)

    async def _answer_here(
        self,
        call: Call,
        job: CompletionJob | EditJob,
        client: str,
        resumed: ResumedSpans,
        reason: str,
        is_prefill: bool,
    ) -> JobResult | None:
        """Return the answer of this machine's engine. Raises EngineUnavailable with ``reason``
        where there is none."""
        local = self._local
        if local is None:
            raise EngineUnavailable(reason)
        if is_prefill:
            call_here = local.prefill(job, client, call.priority)
        else:
            call_here = local.ask(job, client, resumed.add, call.priority)
        try:
            result = await call_here.future
        except asyncio.CancelledError:
            call_here.cancel()
            raise
        return result if isinstance(result, JobResult) else None

    def _sent(self, job: CompletionJob | EditJob, served: Transport) -> CompletionJob | EditJob:
        similar: list[ContextSnippet] = []
        if self.similar is not None and served.similar_bytes:
            similar = self.similar.for_job(job, served.similar_bytes)
        if isinstance(job, EditJob):
            if job.entropy_k:
                raise EngineFailed(
                    "a server verifies exactly; set redraft.edit.verification to exact"
                )
            return replace(job, workspace="", path=_relative(job.path), similar=similar)
        return replace(
            job,
            workspace="",
            similar=similar,
            path=_relative(job.path),
            snippets=[replace(snippet, path=_relative(snippet.path)) for snippet in job.snippets],
        )

    # The server

    async def start(self) -> None:
        """Have a model that answers: the server's, else that of this machine. Raises
        ModelUnavailable or OSError."""
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

    def _lost(self, trouble: ModelUnavailable, served: Transport | None) -> None:
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

    def rest(self) -> None:
        """Ask the server no more until the next request."""
        if self._trying is not None and not self.calls.busy:
            self._trying.cancel()
            self._trying = self._trouble = None
            self._back_off.forget()

    async def close(self) -> None:
        """End all connections."""
        for task in [*self._tasks.values(), self._trying, self._connecting]:
            if task is not None:
                task.cancel()
        self.calls.fail_all(EngineUnavailable("the server is not asked any more"))
        if self._connection is not None:
            await self._connection.close()


def _relative(path: str) -> str:
    """Return a path that tells nothing of this machine: one below its workspace stays as it is."""
    outside = path.startswith(("/", "~", "..")) or "\\" in path or ":" in path
    return posixpath.basename(path.replace("\\", "/")) if outside else path
