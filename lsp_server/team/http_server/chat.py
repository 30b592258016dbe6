"""``POST /v1/chat/completions``. Source: OpenAI's API reference, Chat Completions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute

from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import GenerateJob, JobResult, Span, unchanged
from lsp_server.team.http_server.apply import apply_for, message_of
from lsp_server.team.http_server.errors import invalid
from lsp_server.team.http_server.fields import Fields
from lsp_server.team.http_server.generation_fields import (
    generate_job,
    text_content,
    wanted_logprobs,
)
from lsp_server.team.http_server.limits import RequestLimits
from lsp_server.team.http_server.logprobs import chat_logprobs
from lsp_server.team.http_server.openai_events import OpenAiEvents, openai_route

DEFAULT_TOKENS = 4096
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
MOST_MESSAGES = 256


def chat_routes(engine: EngineInterface, limits: RequestLimits) -> list[BaseRoute]:
    """The second path is that of clients whose base is ``/v1/apply``, as Relace has it."""
    return [
        openai_route(path, engine, limits, _jobs, ChatEvents, _applied)
        for path in ("/v1/chat/completions", "/v1/apply/chat/completions")
    ]


async def _applied(
    engine: EngineInterface, jobs: list[GenerateJob], request: Request
) -> JobResult | None:
    """The answer to a chat that is nothing but a file and a snippet; None for any other."""
    asked = message_of(jobs[0].messages or []) if len(jobs) == 1 else None
    if asked is None:
        return None
    applied = await apply_for(engine, asked, request)
    written = replace(applied.results[0], text=applied.text) if applied.results else None
    return written or unchanged(applied.text)


class ChatEvents(OpenAiEvents):
    """The answers of the route."""

    id_prefix = "chatcmpl"
    whole_object = "chat.completion"
    chunk_object = "chat.completion.chunk"

    def __init__(self, model: str, jobs: Sequence[GenerateJob], choices: int, cost: bool) -> None:
        super().__init__(model, jobs, choices, cost)
        self._with_role: set[int] = set()

    def shown_piece(self, index: int, text: str) -> dict[str, Any]:
        """The first one of a choice says whose message it is."""
        role = {} if index in self._with_role else {"role": "assistant"}
        self._with_role.add(index)
        return {"delta": {**role, "content": text}}

    def shown_end(self) -> dict[str, Any]:
        return {"delta": {}}

    def shown_whole(self, text: str) -> dict[str, Any]:
        return {"message": {"role": "assistant", "content": text, "refusal": None}}

    def logprobs(self, index: int, tokens: list[Span]) -> dict[str, Any]:
        return chat_logprobs(tokens)


def _jobs(fields: Fields) -> list[GenerateJob]:
    job = generate_job(fields, DEFAULT_TOKENS)
    messages = fields.objects("messages", MOST_MESSAGES)
    if not messages:
        raise invalid("messages must have an entry")
    # In a chat 0 and 1 are truth values, as it is asked for by one.
    logprobs = wanted_logprobs(fields) or (0 if fields.take("logprobs") is True else None)
    return [replace(job, messages=[_message(one) for one in messages], logprobs=logprobs)]


def _message(fields: Fields) -> tuple[str, str]:
    role = ROLES.get(fields.text("role"))
    if role is None:
        raise invalid(f"a role must be one of {', '.join(ROLES)}")
    for name in ("tool_calls", "function_call", "prefix", "audio"):
        if fields.take(name):
            raise invalid(f"messages.{name} is not supported; leave it out")
    return role, text_content(fields.take("content"), "messages.content")
