"""``POST /v1/completions``. Source: OpenAI's API reference, Completions."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from lsp_server.engine.jobs import GenerateJob, JobResult
from lsp_server.http_server.answer_text import AnswerPiece
from lsp_server.http_server.bodies import read_json
from lsp_server.http_server.errors import invalid
from lsp_server.http_server.fields import Fields
from lsp_server.http_server.generation import (
    DONE,
    GenerationEvents,
    data,
    generation_response,
    owned,
)
from lsp_server.http_server.generation_fields import MOST_LOGPROBS, generate_job
from lsp_server.http_server.limits import RequestLimits
from lsp_server.http_server.logprobs import CompletionLogprobs
from lsp_server.http_server.model_names import model_name
from lsp_server.http_server.served_engine import ServedEngine
from lsp_server.http_server.usage import finish_reason, usage

DEFAULT_TOKENS = 256


def completion_routes(engine: ServedEngine, limits: RequestLimits) -> list[BaseRoute]:
    """The route."""

    async def complete(request: Request) -> ASGIApp:
        fields = Fields(await read_json(request, limits.body_bytes))
        job = owned(_job(fields), request)
        stream = fields.flag("stream")
        tells_usage = stream and include_usage(fields)
        events = CompletionEvents(model_name(engine), job, tells_usage)
        return generation_response(engine, job, events, stream)

    return [Route("/v1/completions", complete, methods=["POST"])]


class CompletionEvents(GenerationEvents):
    """The answers of the route."""

    def __init__(self, model: str, job: GenerateJob, tells_usage: bool) -> None:
        super().__init__("cmpl", model, job)
        self.head["object"] = "text_completion"
        self._tells_usage = tells_usage
        self._logprobs = CompletionLogprobs() if job.logprobs is not None else None

    def piece(self, piece: AnswerPiece) -> bytes:
        """A piece of the text."""
        return data({**self.head, "choices": [self._choice(piece, None)]})

    def end(self, result: JobResult) -> bytes:
        """Why it ended, and what it cost."""
        last = data({**self.head, "choices": [self._choice(AnswerPiece(), finish_reason(result))]})
        if self._tells_usage:
            last += data({**self.head, "choices": [], "usage": usage(result)})
        return last + DONE

    def whole(self, piece: AnswerPiece, result: JobResult) -> dict[str, Any]:
        """The answer in one."""
        choice = self._choice(piece, finish_reason(result))
        return {**self.head, "choices": [choice], "usage": usage(result)}

    def _choice(self, piece: AnswerPiece, reason: str | None) -> dict[str, Any]:
        logprobs = self._logprobs.of(piece.tokens) if self._logprobs is not None else None
        return {"index": 0, "text": piece.text, "logprobs": logprobs, "finish_reason": reason}


def include_usage(fields: Fields) -> bool:
    """Whether a stream ends with what it cost."""
    options = fields.take("stream_options", {})
    return isinstance(options, dict) and options.get("include_usage") is True


def _job(fields: Fields) -> GenerateJob:
    job = generate_job(fields, DEFAULT_TOKENS)
    job.text, job.tokens = _prompt(fields)
    suffix = fields.text("suffix", "")
    if suffix and job.text is None:
        raise invalid("suffix goes with a prompt that is a text")
    job.suffix = suffix or None
    if fields.take("logprobs") is not None:
        job.logprobs = fields.whole("logprobs", 0, 0, MOST_LOGPROBS)
    return job


def _prompt(fields: Fields) -> tuple[str | None, list[int] | None]:
    """A text or token ids; a list of one of them, too."""
    prompt = fields.take("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return prompt, None
    if isinstance(prompt, list) and all(type(token) is int for token in prompt):
        return None, prompt
    raise invalid("prompt is a text or a list of token ids; one prompt a request")
