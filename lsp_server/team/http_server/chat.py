"""``POST /v1/chat/completions``. Source: OpenAI's API reference, Chat Completions."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.routing import BaseRoute

from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import GenerateJob, JobResult, Span, unchanged
from lsp_server.team.http_server.answer_text import AnswerPiece
from lsp_server.team.http_server.apply import apply_for, message_of
from lsp_server.team.http_server.errors import invalid
from lsp_server.team.http_server.generation_fields import Content, GenerationFields, text_of
from lsp_server.team.http_server.openai_completions import CompletionEvents, openai_route
from lsp_server.team.http_server.rate_limits import RequestLimits
from lsp_server.team.http_server.tool_calls import call_grammar, function_of, spelt
from lsp_server.team.http_server.usage import chat_logprobs

DEFAULT_TOKENS = 4096
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
MOST_MESSAGES = 4096
_SWITCHES = (
    *("think", "thinking", "enable_thinking", "reasoning", "enabled", "type"),
    *("reasoning_effort", "effort", "thinking_budget", "reasoning_budget", "budget_tokens"),
)
"""Of thinking, in bodies and in their objects: of OpenAI, Anthropic, GLM, OpenRouter, llama.cpp."""
NO_TEMPLATE = "the model's chat template has no tools"
NO_TOOLS = {"x-redraft-tools": f"left out: {NO_TEMPLATE}"}


class Function(msgspec.Struct):
    name: str
    arguments: str | dict[str, Any] | None = None


class MessageCall(msgspec.Struct):
    function: Function
    id: str | None = None

    @property
    def as_json(self) -> dict[str, Any]:
        """The call as chat templates read it: with arguments as an object, where they are one."""
        arguments: Any = self.function.arguments or {}
        if isinstance(arguments, str):
            with suppress(ValueError):
                arguments = json.loads(arguments)
        function = {"name": self.function.name, "arguments": arguments}
        return {"id": self.id or "", "type": "function", "function": function}


class Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None = None
    tool_calls: list[MessageCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    function_call: Any = None
    prefix: Any = None
    audio: Any = None

    def as_json(self, takes_tools: bool) -> dict[str, Any]:
        """Return the message as chat templates read it; one of or about a tool in words, unless the
        model ``takes_tools``. Raises RequestRefused."""
        for name in ("function_call", "prefix", "audio"):
            if getattr(self, name):
                raise invalid(f"messages.{name} is not supported; leave it out")
        text = text_of(self.content, "messages.content")
        calls = [call.as_json for call in self.tool_calls or ()]
        if not takes_tools:
            text = "\n".join(filter(None, [text, *map(spelt, calls)]))
            if self.role != "tool":
                return {"role": ROLES[self.role], "content": text}
            return {"role": "user", "content": f"The answer of the tool {self.name or ''}:\n{text}"}
        more = {"tool_calls": calls or None, "tool_call_id": self.tool_call_id}
        more |= {"name": self.name, "reasoning_content": self.reasoning_content}
        message = {"role": ROLES.get(self.role, "tool"), "content": text}
        return message | {name: value for name, value in more.items() if value is not None}


class ToolChoice(msgspec.Struct):
    """Chats have the name below ``function``, responses beside ``type``."""

    function: Function | None = None
    name: str = ""


class ChatFields(GenerationFields, kw_only=True):
    messages: Annotated[list[Message], Meta(min_length=1, max_length=MOST_MESSAGES)]
    tools: list[dict[str, Any]] = []
    tool_choice: Literal["none", "auto", "required"] | ToolChoice = "auto"
    chat_template_kwargs: dict[str, Any] = {}
    reasoning_effort: str = ""
    enable_thinking: bool | None = None
    think: bool | str | None = None
    thinking: Any = None
    reasoning: Any = None
    thinking_budget: Any = None
    reasoning_budget: Any = None

    def chat_job(self, engine: EngineInterface) -> GenerateJob:
        """Return the job of the request. Raises RequestRefused."""
        takes_tools = engine.status.takes_tools
        job, tools = self.job(DEFAULT_TOKENS), self._offered(takes_tools)
        grammar = job.grammar if self.tool_choice in ("none", "auto") else call_grammar(tools)
        # In a chat 0 and 1 are truth values, as numbers of likeliest tokens go by another name.
        likeliest = self.likeliest or (0 if self.logprobs is True else None)
        asked = self.reasoning if isinstance(self.reasoning, dict) else {}
        effort = self.reasoning_effort or asked.get("effort")
        values = {"reasoning_effort": effort} if effort and effort != "none" else {}
        messages = [message.as_json(takes_tools) for message in self.messages]
        return replace(
            job,
            messages=messages,
            tools=tools,
            grammar=grammar,
            template_values={**values, **self.chat_template_kwargs},
            # What fits a grammar has no thoughts.
            thinks=self._thinks(messages) and not grammar,
            logprobs=likeliest,
        )

    def _thinks(self, messages: list[dict[str, Any]]) -> bool:
        """Return if nothing switches thinking off, neither a field, as one client or another has
        them, nor the last word about it in ``messages``."""
        bodies = (asdict(self), self.thinking, self.reasoning, self.chat_template_kwargs)
        said = [body.get(name) for body in bodies if isinstance(body, dict) for name in _SWITCHES]
        spoken = "\n".join(each["content"] for each in messages if each["role"] != "assistant")
        words = re.findall(r"(?<!\S)/(?:no_)?think(?!\S)", spoken)
        return words[-1:] != ["/no_think"] and not any(map(said.count, (False, "none", "disabled")))

    def _offered(self, takes_tools: bool) -> list[dict[str, Any]]:
        """Return the tools that the model may or has to call. Raises RequestRefused."""
        choice = self.tool_choice
        if choice in ("none", "auto"):
            return self.tools if takes_tools and choice == "auto" else []
        named = [tool for tool in self.tools if isinstance(function_of(tool).get("name"), str)]
        if isinstance(choice, ToolChoice):
            name = (choice.function or choice).name
            named = [tool for tool in named if function_of(tool)["name"] == name]
        if not (named and takes_tools):
            raise invalid(f"tool_choice: {NO_TEMPLATE if named else 'tools lack what it names'}")
        return named

    def headers(self, job: GenerateJob) -> dict[str, str]:
        return NO_TOOLS if self.tools and self.tool_choice == "auto" and not job.tools else {}


def chat_routes(engine: EngineInterface, limits: RequestLimits) -> list[BaseRoute]:
    """Return the routes of chats. The second path is for clients whose base is ``/v1/apply``, as
    Relace has it."""

    def jobs(fields: ChatFields) -> list[GenerateJob]:
        return [fields.chat_job(engine)]

    return [
        openai_route(path, engine, limits, ChatFields, jobs, ChatEvents, _applied)
        for path in ("/v1/chat/completions", "/v1/apply/chat/completions")
    ]


async def _applied(
    engine: EngineInterface, jobs: list[GenerateJob], request: Request
) -> JobResult | None:
    """Return the answer to a chat that is nothing but a file and a snippet; None for any other."""
    snippet = message_of(jobs[0].messages or []) if len(jobs) == 1 else None
    if snippet is None:
        return None
    applied = await apply_for(engine, snippet, request)
    written = replace(applied.results[0], text=applied.text) if applied.results else None
    return written or unchanged(applied.text)


class ChatEvents(CompletionEvents):
    """The answers of the route."""

    id_prefix = "chatcmpl"
    whole_object = "chat.completion"
    chunk_object = "chat.completion.chunk"
    shown_end: ClassVar[dict[str, Any]] = {"delta": {}}

    def __init__(self, model: str, jobs: Sequence[GenerateJob], choices: int, cost: bool) -> None:
        super().__init__(model, jobs, choices, cost)
        self._with_role: set[int] = set()

    def shown_piece(self, index: int, piece: AnswerPiece) -> dict[str, Any]:
        """Return the delta of ``piece``; the first of a choice says whose message it is."""
        delta: dict[str, Any] = {} if index in self._with_role else {"role": "assistant"}
        self._with_role.add(index)
        if piece.text or not piece.calls:
            delta["content"] = piece.text
        if piece.calls:
            numbered = enumerate(piece.calls)
            delta["tool_calls"] = [{"index": number, **call.as_json} for number, call in numbered]
        return {"delta": delta}

    def shown_whole(self, piece: AnswerPiece) -> dict[str, Any]:
        text = piece.text if piece.text or not piece.calls else None
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if piece.calls:
            message["tool_calls"] = [call.as_json for call in piece.calls]
        return {"message": message}

    def logprobs(self, index: int, tokens: list[Span]) -> dict[str, Any]:
        return chat_logprobs(tokens)
