"""``POST /v1/chat/completions``. Source: OpenAI's API reference, Chat Completions."""

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
from lsp_server.http_server.generation_fields import MOST_LOGPROBS, generate_job, text_content
from lsp_server.http_server.limits import RequestLimits
from lsp_server.http_server.logprobs import chat_logprobs
from lsp_server.http_server.model_names import model_name
from lsp_server.http_server.openai_completions import include_usage
from lsp_server.http_server.served_engine import ServedEngine
from lsp_server.http_server.usage import finish_reason, usage

DEFAULT_TOKENS = 4096
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
MOST_MESSAGES = 256


def chat_routes(engine: ServedEngine, limits: RequestLimits) -> list[BaseRoute]:
    """The route."""

    async def chat(request: Request) -> ASGIApp:
        fields = Fields(await read_json(request, limits.body_bytes))
        job = owned(_job(fields), request)
        stream = fields.flag("stream")
        tells_usage = stream and include_usage(fields)
        events = ChatEvents(model_name(engine), job, tells_usage)
        return generation_response(engine, job, events, stream)

    return [Route("/v1/chat/completions", chat, methods=["POST"])]


class ChatEvents(GenerationEvents):
    """The answers of the route."""

    def __init__(self, model: str, job: GenerateJob, tells_usage: bool) -> None:
        super().__init__("chatcmpl", model, job)
        self._tells_usage = tells_usage
        self._tells_logprobs = job.logprobs is not None
        self._begun = False

    def piece(self, piece: AnswerPiece) -> bytes:
        """A piece of the message."""
        delta = {"content": piece.text}
        if not self._begun:
            delta = {"role": "assistant", **delta}
            self._begun = True
        return self._chunk([self._choice("delta", delta, piece, None)])

    def end(self, result: JobResult) -> bytes:
        """Why it ended, and what it cost."""
        last = self._chunk([self._choice("delta", {}, AnswerPiece(), finish_reason(result))])
        if self._tells_usage:
            last += self._chunk([], usage=usage(result))
        return last + DONE

    def whole(self, piece: AnswerPiece, result: JobResult) -> dict[str, Any]:
        """The answer in one."""
        message = {"role": "assistant", "content": piece.text, "refusal": None}
        choice = self._choice("message", message, piece, finish_reason(result))
        return {
            **self.head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": usage(result),
        }

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return data({**self.head, "object": "chat.completion.chunk", "choices": choices, **more})

    def _choice(
        self, name: str, value: dict[str, Any], piece: AnswerPiece, reason: str | None
    ) -> dict[str, Any]:
        logprobs = chat_logprobs(piece.tokens) if self._tells_logprobs else None
        return {"index": 0, name: value, "logprobs": logprobs, "finish_reason": reason}


def _job(fields: Fields) -> GenerateJob:
    job = generate_job(fields, DEFAULT_TOKENS)
    messages = fields.objects("messages")
    if not 0 < len(messages) <= MOST_MESSAGES:
        raise invalid(f"messages has 1 to {MOST_MESSAGES} entries")
    job.messages = [_message(message) for message in messages]
    if fields.flag("logprobs"):
        job.logprobs = fields.whole("top_logprobs", 0, 0, MOST_LOGPROBS)
    return job


def _message(fields: Fields) -> tuple[str, str]:
    role = ROLES.get(fields.text("role"))
    if role is None:
        raise invalid(f"a role is one of {', '.join(ROLES)}")
    return role, text_content(fields.take("content"), "messages.content")
