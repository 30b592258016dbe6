"""Ollama's API, which many local clients look for first. Source: Ollama's ``docs/api.md``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import GenerateJob, JobResult
from lsp_server.team.http_server.answer_text import AnswerPiece
from lsp_server.team.http_server.chat import ChatFields
from lsp_server.team.http_server.errors import RequestRefused, invalid
from lsp_server.team.http_server.fields import json_route, read_fields
from lsp_server.team.http_server.generation import GenerationEvents, generation_response, owned
from lsp_server.team.http_server.model_names import model_name
from lsp_server.team.http_server.openai_completions import CompletionFields
from lsp_server.team.http_server.rate_limits import RequestLimits
from lsp_server.team.http_server.tool_calls import ToolCall
from lsp_server.team.http_server.usage import finish_reason

VERSION = "0.12.0"
"""Of Ollama, whose API this is: clients refuse older ones."""


class OllamaFields(msgspec.Struct, kw_only=True):
    """Of ``/api/generate`` and ``/api/chat``."""

    messages: list[dict[str, Any]] = []
    prompt: str = ""
    suffix: str = ""
    system: str = ""
    raw: bool = False
    images: list[Any] = []
    tools: list[dict[str, Any]] = []
    stream: bool = True
    format: str | dict[str, Any] = ""
    think: bool | str = True
    options: dict[str, Any] = {}
    template: str = ""
    context: list[int] = []
    model: Any = None

    def job(self, engine: EngineInterface) -> GenerateJob:
        """Return the job of the request. Raises RequestRefused."""
        if self.images:
            raise invalid("images is not supported: the model reads text alone")
        options = {**self.options, "n_predict": self.options.get("num_predict", -1)}
        if isinstance(self.format, dict):
            options["json_schema"] = self.format
        elif self.format:
            options["response_format"] = {"type": "json_object"}
        if not self.messages and (self.raw or self.suffix or not engine.status.chats):
            body = {**options, "prompt": self.prompt, "suffix": self.suffix}
            fields = read_fields(CompletionFields, body)
            return replace(fields.job(0), text=self.prompt, suffix=self.suffix or None)
        system = [{"role": "system", "content": self.system}] if self.system else []
        messages = self.messages or [*system, {"role": "user", "content": self.prompt}]
        body = {**options, "messages": messages, "tools": self.tools, "think": self.think}
        return read_fields(ChatFields, body).chat_job(engine)


class OllamaEvents(GenerationEvents):
    """The answers of both routes: lines of JSON."""

    comment = b""

    def __init__(self, model: str, job: GenerateJob, is_chat: bool) -> None:
        super().__init__("ollama", model, [job])
        self.headers["content-type"] = "application/x-ndjson"
        self._is_chat = is_chat

    def piece(self, index: int, piece: AnswerPiece) -> bytes:
        return _line(self._answer(piece, done=False))

    def end(self, index: int, result: JobResult) -> bytes:
        return _line(self.choice(index, AnswerPiece(), result))

    def choice(self, index: int, piece: AnswerPiece, result: JobResult) -> dict[str, Any]:
        return {
            **self._answer(piece, done=True),
            "done_reason": finish_reason(result),
            "total_duration": int((result.seconds + result.prefill_seconds) * 1e9),
            "load_duration": 0,
            "prompt_eval_count": result.prompt_tokens,
            "prompt_eval_duration": int(result.prefill_seconds * 1e9),
            "eval_count": result.tokens,
            "eval_duration": int(result.seconds * 1e9),
        }

    def whole(self, choices: Sequence[dict[str, Any]], results: Sequence[JobResult]) -> Any:
        self.headers.clear()
        return choices[0]

    def error(self, refused: RequestRefused) -> bytes:
        return _line({"error": refused.message})

    def _answer(self, piece: AnswerPiece, *, done: bool) -> dict[str, Any]:
        answer: dict[str, Any] = {"model": self.head["model"], "created_at": _now(), "done": done}
        if not self._is_chat:
            return {**answer, "response": piece.text}
        message: dict[str, Any] = {"role": "assistant", "content": piece.text}
        if piece.calls:
            message["tool_calls"] = [_call(call) for call in piece.calls]
        return {**answer, "message": message}


def ollama_routes(engine: EngineInterface, limits: RequestLimits) -> list[BaseRoute]:
    def route(path: str, *, is_chat: bool) -> Route:
        async def write(fields: OllamaFields, request: Request) -> ASGIApp:
            if not (fields.messages if is_chat else fields.prompt or fields.suffix):
                # So a model is loaded, which this one is.
                answer = {"model": model_name(engine), "created_at": _now(), "done": True}
                empty = {"message": {"role": "assistant", "content": ""}, "response": ""}
                return JSONResponse({**answer, **empty, "done_reason": "load"})
            job = owned(fields.job(engine), request)
            events = OllamaEvents(model_name(engine), job, is_chat)
            return generation_response(engine, [job], events, fields.stream)

        return json_route(path, limits, OllamaFields, write)

    def described() -> dict[str, Any]:
        name, family = model_name(engine), "redraft"
        details = {"format": "gguf", "family": family, "families": [family], "parent_model": ""}
        details |= {"parameter_size": "", "quantization_level": engine.status.dtype}
        model = {"name": name, "model": name, "modified_at": _now(), "size": 0, "digest": ""}
        return {**model, "details": details}

    async def models(_request: Request) -> Response:
        return JSONResponse({"models": [described()]})

    async def show(_request: Request) -> Response:
        status = engine.status
        can = {"completion": True, "insert": status.fills, "tools": status.takes_tools}
        info = {"general.architecture": "redraft", "redraft.context_length": status.max_tokens}
        answer = {"modelfile": "", "parameters": "", "template": "", "model_info": info}
        answer |= {"capabilities": [name for name, is_able in can.items() if is_able]}
        return JSONResponse({**answer, "details": described()["details"]})

    async def version(_request: Request) -> Response:
        return JSONResponse({"version": VERSION})

    return [
        route("/api/generate", is_chat=False),
        route("/api/chat", is_chat=True),
        Route("/api/tags", models, methods=["GET"]),
        Route("/api/ps", models, methods=["GET"]),
        Route("/api/show", show, methods=["POST"]),
        Route("/api/version", version, methods=["GET"]),
    ]


def _call(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = {}
    return {"function": {"name": call.name, "arguments": arguments}}


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def _now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
