"""``POST /infill``, as llama.vim and llama.vscode ask llama.cpp. Source: llama.cpp's
``tools/server/README.md``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import ContextSnippet, GenerateJob, JobResult
from lsp_server.team.http_server.answer_text import AnswerPiece
from lsp_server.team.http_server.bodies import read_json
from lsp_server.team.http_server.errors import invalid
from lsp_server.team.http_server.fields import Fields
from lsp_server.team.http_server.generation import (
    GenerationEvents,
    data,
    generation_response,
    owned,
)
from lsp_server.team.http_server.generation_fields import batch_of, choices_of, generate_job
from lsp_server.team.http_server.known_fields import refuse_the_rest
from lsp_server.team.http_server.limits import RequestLimits
from lsp_server.team.http_server.model_names import model_name
from lsp_server.team.http_server.streaming import answered

MOST_FILES = 1000
"""Of which there may be text in a request."""
DEFAULT_TOKENS = 128
_STOP_TYPES = {"end": "eos", "stop": "word", "length": "limit", "cancelled": "limit"}


def infill_routes(engine: EngineInterface, limits: RequestLimits) -> list[BaseRoute]:
    async def infill(request: Request) -> ASGIApp:
        fields = Fields(await read_json(request, limits.body_bytes))
        job = owned(_job(fields), request)
        jobs = batch_of([job], choices_of(fields))
        events = InfillEvents(model_name(engine), jobs, _response_fields(fields))
        stream = fields.flag("stream")
        refuse_the_rest(fields)
        if job.max_tokens == 0:
            await answered([engine.prefill(job, job.owner)], request.receive)
            nothing = JobResult("", [], 0, 0, 0.0, 0.0, {}, "length")
            return JSONResponse(events.choice(0, AnswerPiece(), nothing))
        return generation_response(engine, jobs, events, stream)

    return [Route("/infill", infill, methods=["POST"])]


class InfillEvents(GenerationEvents):
    """The answers of the route."""

    def __init__(self, model: str, jobs: Sequence[GenerateJob], response_fields: list[str]) -> None:
        super().__init__("infill", model, jobs)
        self._response_fields = response_fields

    def piece(self, index: int, piece: AnswerPiece) -> bytes:
        return data({"index": index, "content": piece.text, "stop": False})

    def end(self, index: int, result: JobResult) -> bytes:
        """What it cost."""
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
            "truncated": False,
            "timings": _timings(result),
        }
        if not self._response_fields:
            return answer
        found = {name: _nested(answer, name) for name in self._response_fields}
        return {name: value for name, value in found.items() if value is not None}


def _job(fields: Fields) -> GenerateJob:
    job = generate_job(fields, DEFAULT_TOKENS)
    prompt = fields.take("prompt", "")
    if not isinstance(prompt, str):
        raise invalid("prompt is the text between input_prefix and the cursor")
    return replace(
        job,
        text=fields.text("input_prefix", "") + prompt,
        suffix=fields.text("input_suffix", ""),
        snippets=[_snippet(one) for one in fields.objects("input_extra", MOST_FILES)],
        prompt_seconds=fields.whole("t_max_prompt_ms", 0, 0, 1 << 30) / 1000,
    )


def _snippet(fields: Fields) -> ContextSnippet:
    return ContextSnippet(fields.text("filename", ""), fields.text("text"))


def _response_fields(fields: Fields) -> list[str]:
    names = fields.take("response_fields", [])
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise invalid("response_fields must be a list of names")
    return names[:100]


def _nested(answer: dict[str, Any], name: str) -> Any:
    value: Any = answer
    for part in name.split("/"):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _timings(result: JobResult) -> dict[str, Any]:
    computed = result.prompt_tokens - result.prompt_tokens_reused
    return {
        **_pace("prompt", computed, result.prefill_seconds),
        **_pace("predicted", result.tokens, result.seconds),
    }


def _pace(name: str, count: int, seconds: float) -> dict[str, Any]:
    return {
        f"{name}_n": count,
        f"{name}_ms": seconds * 1000,
        f"{name}_per_token_ms": seconds * 1000 / count if count else 0.0,
        f"{name}_per_second": count / seconds if seconds else 0.0,
    }
