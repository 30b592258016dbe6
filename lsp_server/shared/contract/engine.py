"""The interface of an engine, wherever its model runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lsp_server.shared.contract.calls import Call, Calls, OnSpans
from lsp_server.shared.contract.jobs import COMPLETION, PREFILL, AnyJob, JobResult
from lsp_server.shared.contract.notes import Note
from lsp_server.shared.contract.status import EngineStatus


class EngineInterface(Protocol):
    """A model that completes and edits: a process of this machine, a server, or replicas."""

    calls: Calls
    """Requests that are under way."""

    @property
    def status(self) -> EngineStatus:
        """The engine's last reported status."""

    @property
    def refused(self) -> str:
        """The reason why requests are refused now; empty if they are not."""

    def ask(
        self, job: AnyJob, client: str, on_spans: OnSpans | None = None, priority: int = COMPLETION
    ) -> Call:
        """Have a text written; the future holds a JobResult."""

    def prefill(self, job: AnyJob, client: str, priority: int = PREFILL) -> Call:
        """Compute the prompt of a job that may come."""

    def tell(self, note: Note) -> None:
        """Something of a workspace or a document is another way now."""

    def set_buffer(
        self, folder: str, path: str, read: Callable[[], str], opened: bool = False
    ) -> None:
        """An open document changed; ``read`` gives its text, at the latest with the next request.
        That of one that was ``opened`` is told at once."""

    def note_pace(self, result: JobResult, plain: bool) -> None:
        """A text was written with or without drafts, to compare the two."""

    async def start(self) -> None:
        """Have a model that answers. Raises ModelUnavailable or OSError."""

    async def close(self) -> None:
        """End the work."""
