"""What is asked of an engine, wherever its model runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from lsp_server.contract.status import EngineStatus
from lsp_server.engine.call import Call, OnSpans
from lsp_server.engine.jobs import AcceptedText, CompletionJob, EditJob, JobResult
from lsp_server.engine.load_failure import LoadFailure
from lsp_server.engine.scheduler import COMPLETION


class RequestedEngine(Protocol):
    """A model that completes and edits, whoever asks and wherever it runs."""

    @property
    def status(self) -> EngineStatus:
        """What is known of it now."""

    @property
    def failure(self) -> LoadFailure | None:
        """Why there was no model at the last try."""

    @property
    def queue_length(self) -> int:
        """Requests that are under way or wait."""

    def complete(
        self,
        job: CompletionJob,
        client: str,
        on_spans: OnSpans | None = None,
        urgency: int = COMPLETION,
    ) -> Call:
        """Ask for a completion; the future holds a JobResult."""

    def edit(self, job: EditJob, client: str, on_spans: OnSpans | None, urgency: int) -> Call:
        """Ask for an edit; the future holds a JobResult."""

    def prefill(self, job: CompletionJob | EditJob, client: str, urgency: int) -> Call:
        """Compute the prompt of a request that may come."""

    def accepted(self, taken: AcceptedText) -> None:
        """A user took a suggestion: later drafts may come from it."""

    async def start(self) -> None:
        """Have a model that answers. Raises ModelUnavailable or OSError."""

    async def close(self) -> None:
        """End the work."""


class EngineInterface(RequestedEngine, Protocol):
    """What the daemon uses of it besides: what the user is told, documents, memory."""

    on_busy: Callable[[], None]
    """Told when the first request begins and when the last one ends."""
    latencies_s: deque[float]
    """Of the last completions."""
    cancels_s: deque[float]
    """From the cancel of a request to the answer that it has stopped."""
    cancel_forwards_s: deque[float]
    """What of that was the rest of the forward that ran."""

    @property
    def refused(self) -> str:
        """Why requests have no chance just now; empty when they have one."""

    @property
    def pid(self) -> int | None:
        """Process id of the engine on this machine, where one runs."""

    @property
    def busy(self) -> bool:
        """A request is under way."""

    @property
    def stopping(self) -> int:
        """Cancelled requests that are not known to have stopped."""

    @property
    def request_count(self) -> int:
        """Requests since the engine was made."""

    @property
    def last_used(self) -> float:
        """``time.monotonic()`` of the last request's beginning or end."""

    @property
    def hung(self) -> bool:
        """Requests wait and nothing was heard for so long that nothing will be."""

    def open_workspace(self, folder: str) -> None:
        """Use the datastore of a workspace from now on."""

    def reload_index(self, folder: str, store: str) -> None:
        """The datastore of a workspace, kept in ``store``, changed on disk."""

    def close_workspace(self, folder: str) -> None:
        """No client has the workspace open any more."""

    def set_buffer(
        self, folder: str, path: str, read: Callable[[], str], opened: bool = False
    ) -> None:
        """An open document changed; ``read`` gives its text."""

    def close_buffer(self, folder: str, path: str) -> None:
        """A document was closed."""

    def forget_document(self, folder: str, path: str) -> None:
        """A document is held back: nothing of it is kept."""

    def note_pace(self, result: JobResult, plain: bool) -> None:
        """A text was written with or without drafts, to compare the two."""

    def unload(self) -> None:
        """Give the memory on this machine back."""

    def restart(self) -> None:
        """End a process that hangs."""
