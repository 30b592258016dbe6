"""Runs a generation for a request, and answers it at once or as a stream."""

from __future__ import annotations

import json
import secrets
import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from lsp_server.shared.contract.calls import Call, OnSpans
from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import EditJob, GenerateJob, JobResult, Span
from lsp_server.team.http_server.answer_text import AnswerPiece, AnswerText
from lsp_server.team.http_server.errors import RequestRefused
from lsp_server.team.http_server.generation_fields import priority_of
from lsp_server.team.http_server.metrics import note_result
from lsp_server.team.http_server.rate_limits import PATIENCE_S
from lsp_server.team.http_server.streaming import Events, StreamedCalls, answered

WritingJob = TypeVar("WritingJob", bound=EditJob | GenerateJob)


class GenerationEvents(Events):
    """Progress and end of a generation, in the form of one route."""

    fails_by_status = True

    def __init__(self, kind: str, model: str, jobs: Sequence[GenerateJob]) -> None:
        """``kind``: how ids begin."""
        super().__init__()
        self.head: dict[str, Any] = {
            "id": f"{kind}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
        }
        self._texts = [AnswerText(job) for job in jobs]

    @abstractmethod
    def piece(self, index: int, piece: AnswerPiece) -> bytes:
        """Return a piece of the answer of this number."""

    @abstractmethod
    def end(self, index: int, result: JobResult) -> bytes:
        """Return the end of the answer ``index``."""

    @abstractmethod
    def choice(self, index: int, piece: AnswerPiece, result: JobResult) -> dict[str, Any]:
        """It in one."""

    @abstractmethod
    def whole(self, choices: Sequence[dict[str, Any]], results: Sequence[JobResult]) -> Any:
        """Return all answers in one, as JSON."""

    def spans(self, index: int, spans: list[Span]) -> bytes:
        """New text, as far as it is certain."""
        piece = self._texts[index].add(spans)
        return self.piece(index, piece) if piece else b""

    def result(self, index: int, result: JobResult) -> bytes:
        """Return the last piece, and the end."""
        piece = self._texts[index].end(result)
        last = self.piece(index, piece) if piece else b""
        return last + self.end(index, result)

    def error(self, refused: RequestRefused) -> bytes:
        """Return the end of a request that failed on its way."""
        return data(refused.body)


def generation_response(
    engine: EngineInterface,
    jobs: Sequence[GenerateJob],
    events: GenerationEvents,
    stream: bool,
    prompts: int = 1,
) -> ASGIApp:
    """Return the response to generations, computed together, streaming or in one piece. Several
    prompts wait for their turns as long as it takes: they are no keystroke."""
    if prompts == 1:
        jobs = [replace(jobs[0], patience_s=PATIENCE_S), *jobs[1:]]
    if stream:
        return StreamedCalls([partial(_begin, engine, job) for job in jobs], events)

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for the engine and answer in one piece. Raises RequestRefused or ClientLeft."""
        spans: list[list[Span]] = [[] for _ in jobs]
        calls = [_begin(engine, job, own.extend) for job, own in zip(jobs, spans, strict=True)]
        results: list[JobResult] = await answered(calls, receive)
        choices = []
        for index, (job, own, result) in enumerate(zip(jobs, spans, results, strict=True)):
            note_result(scope, result)
            choices.append(events.choice(index, _piece(job, own, result), result))
        answer = JSONResponse(events.whole(choices, results), headers=events.headers)
        await answer(scope, receive, send)

    return respond


def _begin(engine: EngineInterface, job: GenerateJob, on_spans: OnSpans) -> Call:
    return engine.ask(job, job.owner, on_spans, priority_of(job))


def _piece(job: GenerateJob, spans: list[Span], result: JobResult) -> AnswerPiece:
    text = AnswerText(job)
    first = text.add(spans) if job.logprobs is not None else AnswerPiece()
    rest = text.end(result)
    return AnswerPiece(first.text + rest.text, [*first.tokens, *rest.tokens], rest.calls)


def owned(job: WritingJob, request: Request) -> WritingJob:
    """Return the job with its owner and the connection that it came by."""
    return replace(job, owner=str(request.scope["holder"]), connection=request.scope["connection"])


def data(value: Any) -> bytes:
    """Return a server-sent event without a name. Lone surrogates travel as escapes."""
    return f"data: {json.dumps(value, separators=(',', ':'))}\n\n".encode("ascii")
