"""``POST /v1/completions``. Source: OpenAI's API reference, Completions."""

from __future__ import annotations

from typing import Any

from starlette.routing import BaseRoute

from lsp_server.engine.jobs import GenerateJob, TokenSpan
from lsp_server.http_server.errors import invalid
from lsp_server.http_server.fields import Fields
from lsp_server.http_server.generation_fields import MOST_LOGPROBS, generate_job
from lsp_server.http_server.limits import RequestLimits
from lsp_server.http_server.logprobs import CompletionLogprobs
from lsp_server.http_server.openai_events import OpenAiEvents, openai_route
from lsp_server.http_server.served_engine import ServedEngine

DEFAULT_TOKENS = 256


def completion_routes(engine: ServedEngine, limits: RequestLimits) -> list[BaseRoute]:
    """The route."""
    return [openai_route("/v1/completions", engine, limits, _job, CompletionEvents)]


class CompletionEvents(OpenAiEvents):
    """The answers of the route."""

    id_prefix = "cmpl"
    whole_object = chunk_object = "text_completion"

    def __init__(self, model: str, job: GenerateJob, tells_usage: bool) -> None:
        super().__init__(model, job, tells_usage)
        self._logprobs = CompletionLogprobs()

    def shown_piece(self, text: str) -> dict[str, Any]:
        """The text."""
        return {"text": text}

    def shown_end(self) -> dict[str, Any]:
        """No text."""
        return self.shown_piece("")

    def shown_whole(self, text: str) -> dict[str, Any]:
        """The text."""
        return self.shown_piece(text)

    def logprobs(self, tokens: list[TokenSpan]) -> dict[str, Any]:
        """How likely tokens were, and where in the text they stand."""
        return self._logprobs.of(tokens)


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
