"""An engine that answers what a test writes. It keeps the rules of every engine, by
``team/http_server/test_engines.py``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lsp_server.shared.contract.calls import Call, Calls, OnSpans
from lsp_server.shared.contract.jobs import COMPLETION, PREFILL, AnyJob, JobResult, Span
from lsp_server.shared.contract.notes import Note
from lsp_server.shared.contract.status import EngineStatus


@dataclass(eq=False)
class Request:
    """A request as the engine sees it: the test writes its text, and ends it."""

    job: Any
    priority: int
    call: Call
    calls: Calls
    text: str = ""
    cancelled: bool = False

    def write(self, text: str, likely: float | None = None) -> None:
        """Some more of the text, in one part, or each character as likely."""
        self.text += text
        if self.call.on_spans is not None:
            parts = [text] if likely is None else text
            logprob = None if likely is None else math.log(likely)
            self.call.on_spans([Span(part, "model", logprob) for part in parts])

    def end(self, text: str = "", stopped_by: str = "stop") -> None:
        """No more comes than this."""
        if text:
            self.write(text)
        spans = [Span(self.text, "model")] if self.text else []
        self.calls.finish(
            self.call, JobResult(self.text, spans, len(self.text), 1, 0.1, 0.0, {}, stopped_by)
        )


class EngineStandIn:
    """``requests`` and ``prefills`` hold what was asked, ``told`` the notes."""

    def __init__(self, answer: Callable[[Any], str | None] = lambda _: None, **status: Any) -> None:
        """answer: what is written at once for a job; where it says nothing, the test writes."""
        self.calls = Calls()
        self.status = EngineStatus(**{"state": "ready", "model": "m", **status})
        self.refused = ""
        self.requests: list[Request] = []
        self.prefills: list[Request] = []
        self.told: list[Note] = []
        self._answer = answer

    @property
    def jobs(self) -> list[Any]:
        return [one.job for one in self.requests]

    @property
    def warmed(self) -> list[Any]:
        return [one.job for one in self.prefills]

    @property
    def cancelled_prefills(self) -> list[Request]:
        return [one for one in self.prefills if one.cancelled]

    def ask(
        self, job: AnyJob, client: str, on_spans: OnSpans | None = None, priority: int = COMPLETION
    ) -> Call:
        request = self._begun(job, priority, on_spans)
        self.requests.append(request)
        text = self._answer(job)
        if text is not None:
            request.end(text, "end")
        return request.call

    def prefill(self, job: AnyJob, client: str, priority: int = PREFILL) -> Call:
        request = self._begun(job, priority, None)
        self.prefills.append(request)
        if self._answer(job) is not None:
            request.end()
        return request.call

    def _begun(self, job: AnyJob, priority: int, on_spans: OnSpans | None) -> Request:
        def cancel(_call: Call) -> None:
            request.cancelled = True
            request.end(stopped_by="cancelled")

        request = Request(job, priority, self.calls.begin(priority, on_spans, cancel), self.calls)
        return request

    def tell(self, note: Note) -> None:
        self.told.append(note)

    def set_buffer(
        self, folder: str, path: str, read: Callable[[], str], opened: bool = False
    ) -> None: ...
    def note_pace(self, result: JobResult, plain: bool) -> None: ...
    async def start(self) -> None: ...
    async def close(self) -> None:
        for request in (*self.requests, *self.prefills):
            request.call.cancel()
