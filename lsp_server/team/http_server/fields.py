"""Bodies of requests, bounded in size, time and depth, as typed objects: wrong types and wild
numbers are refused, and so are unknown fields that would change what is written."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from lsp_server.team.http_server.errors import RequestRefused, invalid
from lsp_server.team.http_server.rate_limits import RequestLimits

Body = TypeVar("Body", bound=msgspec.Struct)
Flag: TypeAlias = bool | Literal[0, 1]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 30)]

_TABLE = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_WORDS: dict[str, str] = _TABLE["types"]
_ONE = re.compile(_TABLE["one changes nothing"])
"""Fields of which 1 changes nothing."""
_CHANGES = re.compile(_TABLE["changes"])
"""Names that say, of fields of any server, that they change what is written. Sources: references of
OpenAI's API, llama.cpp, vLLM, SGLang, Text Generation Inference, text-generation-webui, Mistral."""
_HARMLESS = re.compile(_TABLE["harmless"])
"""They say how something is done that is not asked for."""

READ_S = 30.0
"""A body that takes longer to arrive is given up."""


def read_fields(kind: type[Body], values: dict[str, Any]) -> Body:
    """Return ``values`` as ``kind``; a null counts as a field that was not sent, and 16.0 as 16.
    Raises RequestRefused."""
    sent = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in values.items()
        if value is not None
    }
    try:
        fields = msgspec.convert(sent, kind)
    except msgspec.ValidationError as error:
        raise invalid(_in_words(str(error))) from None
    except UnicodeEncodeError:
        raise invalid("a name, or a text in place of a number, has half a character") from None
    _refuse_unknown(kind, sent)
    return fields


def _in_words(message: str) -> str:
    """Return msgspec's message as one of ours: ``max_tokens is a whole number, not a text``."""
    what, _, path = message.partition(" - at `$")
    path = path.strip("`.").replace("[...]", "")
    if (named := re.search(r"(missing|unknown).*field `(.*)`$", what)) is not None:
        name = ".".join(filter(None, (path, named[2][:60])))
        return f"{name} is {'missing' if named[1] == 'missing' else 'not known here'}"
    expected, _, actual = what.removeprefix("Expected ").partition(", got ")
    if expected == what:
        return f"{path}: {what}"
    return f"{path} is {_types(expected)}" + (f", not {_types(actual)}" if actual else "")


def _types(text: str) -> str:
    def words(match: re.Match[str]) -> str:
        names = [name for name in match[1].split(" | ") if name != "null"]
        return " or ".join(_WORDS.get(name, name) for name in names or ["null"])

    return re.sub(r"`([^`]*)`", words, text)


def _refuse_unknown(kind: type[msgspec.Struct], values: dict[str, Any]) -> None:
    """Raise RequestRefused if ``values`` has a field that ``kind`` lacks and that would change what
    is written."""
    for name in sorted(values.keys() - set(kind.__struct_fields__)):
        if _changes(name, values[name]):
            raise invalid(f"{name[:60]} is not supported; leave it out")


def _changes(name: str, value: Any) -> bool:
    """Return if a field of this ``name`` changes what is written by this ``value``."""
    if value in ("", [], {}, ["text"], "none", "auto") or value is False:
        return False
    is_number = type(value) in (int, float)
    if is_number and (value in (0, -1) or (value == 1 and _ONE.fullmatch(name))):
        return False
    return bool(_CHANGES.search(name.lower())) and not _HARMLESS.fullmatch(name)


def json_route(
    path: str,
    limits: RequestLimits,
    kind: type[Body],
    respond: Callable[[Body, Request], Awaitable[ASGIApp]],
) -> Route:
    """Return a route whose requests are read as ``kind`` and answered by ``respond``."""

    async def answer(request: Request) -> ASGIApp:
        fields = read_fields(kind, await read_json(request, limits.body_bytes))
        return await respond(fields, request)

    return Route(path, answer, methods=["POST"])


async def read_json(request: Request, most_bytes: int) -> dict[str, Any]:
    """Return the JSON object in the body. Raises RequestRefused, ClientDisconnect."""
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length) > most_bytes:
        raise _too_large(most_bytes)
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RequestRefused(415, "a body is not compressed", "unsupported_encoding")
    try:
        body = await asyncio.wait_for(_received(request, most_bytes), READ_S)
    except asyncio.TimeoutError:
        raise RequestRefused(408, "the body did not arrive in time", "timeout") from None
    try:
        value = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise invalid("the body is not JSON") from None
    if not isinstance(value, dict):
        raise invalid("the body is not a JSON object")
    return value


async def _received(request: Request, most_bytes: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most_bytes:
            raise _too_large(most_bytes)
    return bytes(body)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _too_large(most_bytes: int) -> RequestRefused:
    return RequestRefused(413, f"a body has at most {most_bytes} bytes", "too_large")
