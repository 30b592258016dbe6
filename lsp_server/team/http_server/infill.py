"""``POST /infill``, as llama.vim and llama.vscode ask llama.cpp. Source: llama.cpp's
``tools/server/README.md``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import MOST_TOKENS, ContextSnippet, GenerateJob, JobResult
from lsp_server.team.http_server.answer_text import AnswerPiece
from lsp_server.team.http_server.fields import Count, json_route
from lsp_server.team.http_server.generation import (
    GenerationEvents,
    data,
    generation_response,
    owned,
)
from lsp_server.team.http_server.generation_fields import GenerationFields, batch_of
from lsp_server.team.http_server.model_names import model_name
from lsp_server.team.http_server.rate_limits import RequestLimits
from lsp_server.team.http_server.streaming import answered

DEFAULT_TOKENS = 128
_STOP_TYPES = {"end": "eos", "stop": "word", "length": "limit", "cancelled": "limit"}


def infill_routes(engine: EngineInterface, limits: RequestLimits) -> list[BaseRoute]:
    async def write(fields: PromptFields, request: Request) -> ASGIApp:
        job = owned(fields.prompt_job(), request)
        jobs = batch_of([job], fields.choices)
        events = InfillEvents(model_name(engine), jobs, fields.response_fields)
        if job.max_tokens == 0:
            await answered([engine.prefill(job, job.owner)], request.receive)
            nothing = JobResult("", [], 0, 0, 0.0, 0.0, {}, "length")
            return JSONResponse(events.choice(0, AnswerPiece(), nothing))
        return generation_response(engine, jobs, events, bool(fields.stream))

    return [
        json_route("/infill", limits, InfillFields, write),
        json_route("/completion", limits, PromptFields, write),
    ]


class PromptFields(GenerationFields, kw_only=True):
    """Of ``/completion``, llama.cpp's own."""

    prompt: str
    response_fields: Annotated[list[str], Meta(max_length=100)] = []

    def prompt_job(self) -> GenerateJob:
        """Return the job of the request."""
        return replace(self.job(MOST_TOKENS), text=self.prompt)


class Extra(msgspec.Struct):
    text: str
    filename: str | None = ""


class InfillFields(PromptFields, kw_only=True):
    input_prefix: str = ""
    prompt: str = ""
    """The text between ``input_prefix`` and the cursor."""
    input_suffix: str = ""
    input_extra: Annotated[list[Extra], Meta(max_length=1000)] = []
    t_max_prompt_ms: Count = 0

    def prompt_job(self) -> GenerateJob:
        # What is only computed ahead takes the time that it takes: no key waits for it.
        job = self.job(DEFAULT_TOKENS)
        seconds = self.t_max_prompt_ms / 1000 if job.max_tokens else 0.0
        extra = [ContextSnippet(each.filename or "", each.text) for each in self.input_extra]
        return replace(
            job,
            text=self.input_prefix + self.prompt,
            suffix=self.input_suffix,
            snippets=extra,
            prompt_seconds=seconds,
        )


class InfillEvents(GenerationEvents):
    """The answers of the route."""

    def __init__(self, model: str, jobs: Sequence[GenerateJob], response_fields: list[str]) -> None:
        super().__init__("infill", model, jobs)
        self._response_fields = response_fields

    def piece(self, index: int, piece: AnswerPiece) -> bytes:
        return data({"index": index, "content": piece.text, "stop": False})

    def end(self, index: int, result: JobResult) -> bytes:
        """Return the last piece, which tells the cost."""
        return data(self.choice(index, AnswerPiece(), result))

    def whole(
        self, choices: Sequence[dict[str, Any]], results: Sequence[JobResult]
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """One answer as it is, several in a list, as llama.cpp has it."""
        return choices[0] if len(choices) == 1 else list(choices)

    def choice(self, index: int, piece: AnswerPiece, result: JobResult) -> dict[str, Any]:
        answer = {
            "index": index,
            "content": piece.text,
            "model": self.head["model"],
            "stop": True,
            "stop_type": _STOP_TYPES.get(result.stopped_by, "none"),
            "stopping_word": "",
            "tokens_predicted": result.tokens,
            "tokens_evaluated": result.prompt_tokens,
            "tokens_cached": result.prompt_tokens_reused,
            "truncated": result.is_prompt_cut,
            "timings": {
                **_pace("prompt", result.prompt_rows, result.prefill_seconds),
                **_pace("predicted", result.tokens, result.seconds),
            },
        }
        if not self._response_fields:
            return answer
        values = {name: _nested(answer, name) for name in self._response_fields}
        return {name: value for name, value in values.items() if value is not None}


def _nested(answer: dict[str, Any], name: str) -> Any:
    value: Any = answer
    for key in name.split("/"):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _pace(name: str, count: int, seconds: float) -> dict[str, Any]:
    return {
        f"{name}_n": count,
        f"{name}_ms": seconds * 1000,
        f"{name}_per_token_ms": seconds * 1000 / count if count else 0.0,
        f"{name}_per_second": count / seconds if seconds else 0.0,
    }
