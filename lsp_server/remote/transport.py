"""The way to an engine behind a server, by whichever protocol that is asked."""

from __future__ import annotations

from typing import Protocol

from lsp_server.contract.calls import OnSpans
from lsp_server.contract.jobs import AcceptedText, CompletionJob, EditJob, JobResult
from lsp_server.contract.status import EngineStatus


class Transport(Protocol):
    """Cancelling the coroutine of a question ends the work there."""

    @property
    def status(self) -> EngineStatus:
        """What is known of the model."""

    @property
    def drafts(self) -> bool:
        """Whether the server drafts for what it is asked."""

    async def ask(
        self,
        job: CompletionJob | EditJob,
        priority: int,
        on_spans: OnSpans,
        is_prefill: bool = False,
    ) -> JobResult | None:
        """Do a job, or compute its prompt alone, of which nothing comes back. Raises
        ServerUnavailable, or EngineFailed where this job alone failed."""

    async def accepted(self, taken: AcceptedText) -> None:
        """Tell of a suggestion that a user took. Raises ServerUnavailable or EngineFailed."""
