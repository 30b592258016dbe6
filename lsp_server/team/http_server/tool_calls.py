"""Calls of functions in what a model writes, and in the messages that it reads.

Sources: the chat templates of Hermes, Qwen2.5 and Qwen3 (JSON between tags) and of Qwen3-Coder and
Qwen3.5 (tags for each parameter).
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lsp_server.team.http_server.generation_fields import fitting

BEGIN, END = "<tool_call>", "</tool_call>"
_CALL = re.compile(r"\s*<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\n]+)>(.*)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that the model wants to be called; ``arguments`` is JSON as text."""

    name: str
    arguments: str
    id: str = field(default_factory=lambda: f"call_{secrets.token_hex(12)}")

    @property
    def as_json(self) -> dict[str, Any]:
        """The call as OpenAI's chats have it."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


def calls_in(text: str, tools: Sequence[dict[str, Any]]) -> tuple[str, list[ToolCall]]:
    """Return the text beside the calls, and these. What cannot be read as a call stays text."""
    calls: list[ToolCall] = []

    def taken(match: re.Match[str]) -> str:
        call = _read(match[1], tools)
        if call is None:
            return match[0]
        calls.append(call)
        return ""

    return _CALL.sub(taken, text), calls


def _read(text: str, tools: Sequence[dict[str, Any]]) -> ToolCall | None:
    if (match := _FUNCTION.fullmatch(text)) is not None:
        name = match[1].strip()
        types = _types(name, tools)
        values = {key.strip(): value for key, value in _PARAMETER.findall(match[2])}
        arguments = {key: _value(text, types.get(key)) for key, text in values.items()}
        return ToolCall(name, json.dumps(arguments, ensure_ascii=False))
    try:
        call = json.loads(text)
    except ValueError:
        return None
    if not (isinstance(call, dict) and isinstance(call.get("name"), str)):
        return None
    arguments_ = call.get("arguments", call.get("parameters", {}))
    return ToolCall(
        call["name"],
        arguments_ if isinstance(arguments_, str) else json.dumps(arguments_, ensure_ascii=False),
    )


def _types(name: str, tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the types of the parameters of the function ``name``, as far as ``tools`` tells."""
    schemas = (_schema(tool) for tool in tools if function_of(tool).get("name") == name)
    properties = next(schemas, {}).get("properties")
    if not isinstance(properties, dict):
        return {}
    return {key: value.get("type") for key, value in properties.items() if isinstance(value, dict)}


def function_of(tool: dict[str, Any]) -> dict[str, Any]:
    """Return what ``tool`` says of its function; nothing if it is none."""
    function = tool.get("function")
    return function if isinstance(function, dict) else {}


def _schema(tool: dict[str, Any]) -> dict[str, Any]:
    schema = function_of(tool).get("parameters")
    return {"type": "object", **(schema if isinstance(schema, dict) else {})}


def call_grammar(tools: Sequence[dict[str, Any]]) -> str:
    """Return the grammar of a call of one of ``tools``."""
    calls: list[str] = []
    for tool in tools:
        name = json.dumps(function_of(tool)["name"], ensure_ascii=False)
        begin = json.dumps(f'{{"name": {name}, "arguments": ', ensure_ascii=False)
        # A rule for each: what a schema refers to is found in itself.
        calls.append(f'call_{len(calls)}: {begin} {fitting(_schema(tool))} "}}"')
    names = " | ".join(f"call_{number}" for number in range(len(calls)))
    begin, end = json.dumps(f"{BEGIN}\n"), json.dumps(f"\n{END}")
    return "\n".join([f"start: {begin} ({names}) {end}", *calls])


def _value(text: str, kind: Any) -> Any:
    if kind in ("string", None):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def spelt(call: dict[str, Any]) -> str:
    """Return a call of a message as a model writes it, for templates that know none."""
    function = call["function"]
    return f"{BEGIN}\n{json.dumps(function, ensure_ascii=False)}\n{END}"
