"""A model at a server, as the remote engine asks it."""

from __future__ import annotations

from typing import Literal, Protocol

from lsp_server.contract.status import EngineStatus
from lsp_server.engine.call import OnSpans
from lsp_server.engine.jobs import AcceptedText, CompletionJob, EditJob, JobResult

Operation = Literal["complete", "edit", "prefill"]


class ServedModel(Protocol):
    """What a server has, by whichever protocol it is asked."""

    @property
    def status(self) -> EngineStatus:
        """What is known of the model."""

    @property
    def drafts(self) -> bool:
        """Whether the server drafts for what it is asked."""

    async def run(
        self,
        operation: Operation,
        job: CompletionJob | EditJob,
        urgency: int,
        document: str,
        on_spans: OnSpans,
    ) -> JobResult | None:
        """Do a job; None of a prefill. Cancelling the coroutine ends the work there.

        Raises ServerUnavailable, or EngineFailed where this job alone failed.
        """

    async def accepted(self, taken: AcceptedText) -> None:
        """Tell of a suggestion that a user took. Raises ServerUnavailable or EngineFailed."""
