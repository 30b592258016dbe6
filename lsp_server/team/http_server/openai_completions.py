"""``POST /v1/completions``, and what chats share with it.

Source: OpenAI's API reference, Completions and Chat Completions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import GenerateJob, JobResult, Span
from lsp_server.team.http_server.answer_text import AnswerPiece
from lsp_server.team.http_server.errors import invalid
from lsp_server.team.http_server.fields import json_route
from lsp_server.team.http_server.generation import (
    GenerationEvents,
    data,
    generation_response,
    owned,
)
from lsp_server.team.http_server.generation_fields import GenerationFields, batch_of
from lsp_server.team.http_server.model_names import model_name
from lsp_server.team.http_server.rate_limits import RequestLimits
from lsp_server.team.http_server.streaming import EVENT_HEADERS
from lsp_server.team.http_server.usage import CompletionLogprobs, finish_reason, usage

DEFAULT_TOKENS = 256
DONE = b"data: [DONE]\n\n"
Fields = TypeVar("Fields", bound=GenerationFields)
KnownAnswer = Callable[[EngineInterface, list[GenerateJob], Request], Awaitable[JobResult | None]]


def completion_routes(engine: EngineInterface, limits: RequestLimits) -> list[BaseRoute]:
    return [
        openai_route("/v1/completions", engine, limits, CompletionFields, _jobs, CompletionEvents)
    ]


class CompletionEvents(GenerationEvents):
    """The answers of completions. Chats call their objects otherwise and show text otherwise."""

    id_prefix = "cmpl"
    whole_object = "text_completion"
    """``object`` of an answer in one."""
    chunk_object = "text_completion"
    """``object`` of a piece of a stream."""
    shown_end: ClassVar[dict[str, Any]] = {"text": ""}
    """No text, in the choice of the last chunk."""

    def __init__(self, model: str, jobs: Sequence[GenerateJob], choices: int, cost: bool) -> None:
        """``choices``: jobs of each prompt; ``cost``: a stream ends with it."""
        super().__init__(self.id_prefix, model, jobs)
        self._choices, self._tells_usage = choices, cost
        self._tells_logprobs = jobs[0].logprobs is not None
        self._logprobs = [CompletionLogprobs() for _ in jobs]
        self._calls: set[int] = set()
        """Answers that call functions."""

    def shown_piece(self, index: int, piece: AnswerPiece) -> dict[str, Any]:
        """Return a piece of the answer, as the choice of a chunk has it."""
        return self.shown_whole(piece)

    def shown_whole(self, piece: AnswerPiece) -> dict[str, Any]:
        """Return the whole answer, as a choice has it."""
        return {"text": piece.text}

    def logprobs(self, index: int, tokens: list[Span]) -> dict[str, Any]:
        """Return the log probabilities of tokens, and their places in the text of their choice."""
        return self._logprobs[index].of(tokens)

    def piece(self, index: int, piece: AnswerPiece) -> bytes:
        self._calls |= {index} if piece.calls else set()
        content = self.shown_piece(index, piece)
        return self._chunk([self._choice(index, content, piece, None)])

    def end(self, index: int, result: JobResult) -> bytes:
        """Return the reason why a text ended."""
        content, reason = self.shown_end, finish_reason(result, index in self._calls)
        return self._chunk([self._choice(index, content, AnswerPiece(), reason)])

    def close(self, results: Sequence[JobResult]) -> bytes:
        """Return the usage, where the client asks for it, and the end of the stream."""
        cost = self._chunk([], usage=usage(results, self._choices)) if self._tells_usage else b""
        return cost + DONE

    def choice(self, index: int, piece: AnswerPiece, result: JobResult) -> dict[str, Any]:
        reason = finish_reason(result, bool(piece.calls))
        return self._choice(index, self.shown_whole(piece), piece, reason)

    def whole(
        self, choices: Sequence[dict[str, Any]], results: Sequence[JobResult]
    ) -> dict[str, Any]:
        named = {**self.head, "object": self.whole_object}
        return {**named, "choices": choices, "usage": usage(results, self._choices)}

    def at_once(self, result: JobResult, stream: bool) -> Response:
        """Return the response to a request of which the one answer is known."""
        piece = AnswerPiece(result.text)
        if not stream:
            return JSONResponse(self.whole([self.choice(0, piece, result)], [result]))
        content = self.piece(0, piece) + self.end(0, result) + self.close([result])
        return Response(content, headers=EVENT_HEADERS)

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return data({**self.head, "object": self.chunk_object, "choices": choices, **more})

    def _choice(
        self, index: int, content: dict[str, Any], piece: AnswerPiece, reason: str | None
    ) -> dict[str, Any]:
        logprobs = self.logprobs(index, piece.tokens) if self._tells_logprobs else None
        return {"index": index, **content, "logprobs": logprobs, "finish_reason": reason}


def openai_route(
    path: str,
    engine: EngineInterface,
    limits: RequestLimits,
    kind: type[Fields],
    jobs_of: Callable[[Fields], list[GenerateJob]],
    events_of: type[CompletionEvents],
    known_answer: KnownAnswer | None = None,
) -> Route:
    """Return a route that answers in one, or streams. ``kind``: a body's fields; ``jobs_of``: a job
    for each prompt; ``known_answer``: gives the answer if the model is not asked for it."""

    async def generate(fields: Fields, request: Request) -> ASGIApp:
        prompts, choices = jobs_of(fields), fields.choices
        jobs = [owned(job, request) for job in batch_of(prompts, choices)]
        stream = bool(fields.stream)
        tells_usage = stream and fields.stream_options.include_usage is True
        events = events_of(model_name(engine), jobs, choices, tells_usage)
        events.headers |= fields.headers(jobs[0])
        answer = await known_answer(engine, jobs, request) if known_answer is not None else None
        if answer is not None:
            return events.at_once(answer, stream)
        return generation_response(engine, jobs, events, stream, len(prompts))

    return json_route(path, limits, kind, generate)


class CompletionFields(GenerationFields, kw_only=True):
    prompt: str | list[str | int | list[int]]
    suffix: str = ""


def _jobs(fields: CompletionFields) -> list[GenerateJob]:
    suffix = fields.suffix
    job = replace(fields.job(DEFAULT_TOKENS), suffix=suffix or None, logprobs=fields.likeliest)
    prompts = _prompts(fields.prompt)
    if suffix and not all(isinstance(prompt, str) for prompt in prompts):
        raise invalid("suffix needs a prompt that is a text")
    return [
        replace(job, text=prompt) if isinstance(prompt, str) else replace(job, tokens=prompt)
        for prompt in prompts
    ]


def _prompts(value: Any) -> list[str | list[int]]:
    if _is_prompt(value):
        return [value]
    if not (isinstance(value, list) and all(map(_is_prompt, value))):
        raise invalid("prompt is a text, a list of token ids, or a list of several of them")
    return value


def _is_prompt(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(type(token) is int for token in value)
    )
