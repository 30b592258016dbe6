"""``POST /v1/completions``. Source: OpenAI's API reference, Completions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starlette.routing import BaseRoute

from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import GenerateJob, Span
from lsp_server.team.http_server.answer_text import AnswerPiece
from lsp_server.team.http_server.errors import invalid
from lsp_server.team.http_server.generation_fields import GenerationFields
from lsp_server.team.http_server.limits import RequestLimits
from lsp_server.team.http_server.logprobs import CompletionLogprobs
from lsp_server.team.http_server.openai_events import OpenAiEvents, openai_route

DEFAULT_TOKENS = 256


def completion_routes(engine: EngineInterface, limits: RequestLimits) -> list[BaseRoute]:
    return [
        openai_route("/v1/completions", engine, limits, CompletionFields, _jobs, CompletionEvents)
    ]


class CompletionEvents(OpenAiEvents):
    """The answers of the route."""

    id_prefix = "cmpl"
    whole_object = chunk_object = "text_completion"

    def __init__(self, model: str, jobs: Sequence[GenerateJob], choices: int, cost: bool) -> None:
        super().__init__(model, jobs, choices, cost)
        self._logprobs = [CompletionLogprobs() for _ in jobs]

    def shown_piece(self, index: int, piece: AnswerPiece) -> dict[str, Any]:
        return {"text": piece.text}

    def shown_end(self) -> dict[str, Any]:
        return {"text": ""}

    def shown_whole(self, piece: AnswerPiece) -> dict[str, Any]:
        return {"text": piece.text}

    def logprobs(self, index: int, tokens: list[Span]) -> dict[str, Any]:
        """Return the log probabilities of tokens, and their places in the text of their choice."""
        return self._logprobs[index].of(tokens)


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
