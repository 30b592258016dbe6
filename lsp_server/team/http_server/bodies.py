"""Reads bodies of requests: bounded in size, time and depth."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from lsp_server.team.http_server.errors import RequestRefused, invalid
from lsp_server.team.http_server.fields import Body, read_fields
from lsp_server.team.http_server.rate_limits import RequestLimits

READ_S = 30.0
"""A body that takes longer to arrive is given up."""


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
