"""``POST /v1/responses``, as Codex, ``@ai-sdk/openai`` and openai-agents ask. Nothing is stored.
Source: OpenAI's API reference, Responses."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import GenerateJob, JobResult
from lsp_server.team.http_server.answer_text import AnswerPiece
from lsp_server.team.http_server.chat import ChatFields
from lsp_server.team.http_server.errors import RequestRefused, invalid
from lsp_server.team.http_server.fields import Flag, json_route, read_fields
from lsp_server.team.http_server.generation import GenerationEvents, generation_response, owned
from lsp_server.team.http_server.model_names import model_name
from lsp_server.team.http_server.rate_limits import RequestLimits
from lsp_server.team.http_server.streaming import event
from lsp_server.team.http_server.tool_calls import ToolCall
from lsp_server.team.http_server.usage import finish_reason, usage

_SAME = ("temperature", "top_p", "tool_choice", "stop", "seed", "chat_template_kwargs", "reasoning")
"""Fields of chats that are called the same here."""


class Text(msgspec.Struct):
    format: dict[str, Any] | None = None


class ResponseFields(msgspec.Struct, kw_only=True):
    input: str | list[dict[str, Any]]
    instructions: str = ""
    tools: list[dict[str, Any]] = []
    tool_choice: Any = "auto"
    max_output_tokens: int | None = None
    temperature: Any = None
    top_p: Any = None
    stop: Any = None
    seed: Any = None
    chat_template_kwargs: Any = None
    stream: Flag = False
    text: Text | None = None
    reasoning: Any = None

    def chat(self) -> dict[str, Any]:
        """Return the same request as a chat. Raises RequestRefused."""
        system = [{"role": "system", "content": self.instructions}] if self.instructions else []
        form = (self.text.format if self.text else None) or {}
        return {
            **{name: getattr(self, name) for name in _SAME},
            "messages": system + _messages(self.input),
            "tools": [_tool(tool) for tool in self.tools if tool.get("type") == "function"],
            "max_tokens": self.max_output_tokens,
            "response_format": {"json_schema": form, **form},
        }


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = {name: value for name, value in tool.items() if name not in ("type", "strict")}
    return {"type": "function", "function": function}


def _messages(items: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return ``input`` as messages of a chat; what a model thought is left out."""
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    messages: list[dict[str, Any]] = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            messages.append({"role": item.get("role"), "content": item.get("content")})
        elif kind == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            call = {"id": item.get("call_id"), "function": function}
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            answer = {"role": "tool", "content": item.get("output")}
            messages.append({**answer, "tool_call_id": item.get("call_id")})
        elif kind != "reasoning":
            raise invalid(f"input has messages, calls of functions and their outputs, no {kind!r}")
    return messages


def responses_routes(engine: EngineInterface, limits: RequestLimits) -> list[BaseRoute]:
    async def respond(fields: ResponseFields, request: Request) -> ASGIApp:
        chat = read_fields(ChatFields, fields.chat())
        job = owned(chat.chat_job(engine), request)
        events = ResponseEvents(model_name(engine), job, fields)
        events.headers |= chat.headers(job)
        return generation_response(engine, [job], events, bool(fields.stream))

    return [json_route("/v1/responses", limits, ResponseFields, respond)]


class ResponseEvents(GenerationEvents):
    """The answers of the route."""

    def __init__(self, model: str, job: GenerateJob, fields: ResponseFields) -> None:
        super().__init__("resp", model, [job])
        self._fields = fields
        self._number = 0
        self._text: str | None = None
        """What was streamed of the message; None before it."""
        self._message_id = f"msg_{secrets.token_hex(12)}"
        self._calls: list[ToolCall] = []

    def piece(self, index: int, piece: AnswerPiece) -> bytes:
        self._calls += piece.calls
        return self._opening() + (self._delta(piece.text) if piece.text else b"")

    def end(self, index: int, result: JobResult) -> bytes:
        """Close what was begun, and tell the calls."""
        opening = self._opening()
        if self._text is None and not self._calls:
            opening += self._delta("")
        answer = AnswerPiece(self._text or "", calls=self._calls)
        items = self.choice(index, answer, result)["output"]
        events = b"".join(self._item(number, item) for number, item in enumerate(items))
        response = self._response(items, result)
        return opening + events + self._event(f"response.{response['status']}", response=response)

    def choice(self, index: int, piece: AnswerPiece, result: JobResult) -> dict[str, Any]:
        items = [_message(self._message_id, piece.text)] if piece.text or not piece.calls else []
        return {"output": [*items, *map(_call, piece.calls)]}

    def whole(self, choices: Sequence[dict[str, Any]], results: Sequence[JobResult]) -> Any:
        return self._response(choices[0]["output"], results[0])

    def error(self, refused: RequestRefused) -> bytes:
        return self._event("error", code=refused.code, message=refused.message, param=None)

    def _opening(self) -> bytes:
        if self._number:
            return b""
        response = self._response([], None)
        names = "response.created", "response.in_progress"
        return b"".join(self._event(name, response=response) for name in names)

    def _delta(self, text: str) -> bytes:
        opening = b""
        if self._text is None:
            self._text = ""
            item = {**_message(self._message_id, ""), "status": "in_progress", "content": []}
            opening = self._event("response.output_item.added", output_index=0, item=item)
            opening += self._part("content_part.added", part=_part(""))
        self._text += text
        return opening + self._part("output_text.delta", delta=text, logprobs=[])

    def _item(self, number: int, item: dict[str, Any]) -> bytes:
        position = {"output_index": number, "item_id": item["id"]}
        if item["type"] == "message":
            (content,) = item["content"]
            events = self._part("output_text.done", text=content["text"], logprobs=[])
            events += self._part("content_part.done", part=content)
        else:
            opened = {**item, "status": "in_progress", "arguments": ""}
            arguments = item["arguments"]
            events = self._event("response.output_item.added", output_index=number, item=opened)
            name = "response.function_call_arguments"
            events += self._event(f"{name}.delta", **position, delta=arguments)
            events += self._event(f"{name}.done", **position, arguments=arguments)
        return events + self._event("response.output_item.done", output_index=number, item=item)

    def _part(self, name: str, **values: Any) -> bytes:
        position = {"item_id": self._message_id, "output_index": 0, "content_index": 0}
        return self._event(f"response.{name}", **position, **values)

    def _event(self, name: str, **values: Any) -> bytes:
        self._number += 1
        return event(name, {"type": name, "sequence_number": self._number - 1, **values})

    def _response(self, output: list[dict[str, Any]], result: JobResult | None) -> dict[str, Any]:
        """Return the answer as an object; without ``result`` it has only begun."""
        is_cut = result is not None and finish_reason(result) == "length"
        status = "in_progress" if result is None else "incomplete" if is_cut else "completed"
        return {
            "id": self.head["id"].replace("-", "_"),
            "object": "response",
            "created_at": self.head["created"],
            "model": self.head["model"],
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "instructions": self._fields.instructions or None,
            "metadata": {},
            "output": output,
            "parallel_tool_calls": True,
            "temperature": self._fields.temperature,
            "top_p": self._fields.top_p,
            "tool_choice": self._fields.tool_choice,
            "tools": self._fields.tools,
            "usage": None if result is None else _usage(result),
        }


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _message(name: str, text: str) -> dict[str, Any]:
    message = {"type": "message", "id": name, "role": "assistant", "status": "completed"}
    return {**message, "content": [_part(text)]}


def _call(call: ToolCall) -> dict[str, Any]:
    item = {"type": "function_call", "id": call.id.replace("call", "fc"), "call_id": call.id}
    return {**item, "name": call.name, "arguments": call.arguments, "status": "completed"}


def _usage(result: JobResult) -> dict[str, Any]:
    counts = usage([result])
    return {
        "input_tokens": counts["prompt_tokens"],
        "input_tokens_details": {**counts["prompt_tokens_details"], "cache_write_tokens": 0},
        "output_tokens": counts["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": counts["total_tokens"],
    }
