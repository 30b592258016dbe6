"""Reads bodies of requests: bounded in size, time and depth, before and after decompression."""

from __future__ import annotations

import asyncio
import json
import zlib
from typing import Any

from starlette.requests import Request

from lsp_server.team.http_server.errors import RequestRefused, invalid

READ_S = 30.0
"""A body that takes longer to arrive is given up."""


async def read_body(request: Request, most_bytes: int) -> bytes:
    """The body as it was meant. Raises RequestRefused, ClientDisconnect."""
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length) > most_bytes:
        raise _too_large(most_bytes)
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding not in ("identity", "gzip"):
        raise RequestRefused(415, "a body must be plain or gzip", "unsupported_encoding")
    try:
        body = await asyncio.wait_for(_received(request, most_bytes), READ_S)
    except asyncio.TimeoutError:
        raise RequestRefused(408, "the body did not arrive in time", "timeout") from None
    return body if encoding == "identity" else unpacked(body, most_bytes)


async def read_json(request: Request, most_bytes: int) -> dict[str, Any]:
    """Return the JSON object in the body. Raises RequestRefused, ClientDisconnect."""
    body = await read_body(request, most_bytes)
    try:
        value = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise invalid("the body is not JSON") from None
    if not isinstance(value, dict):
        raise invalid("the body is not a JSON object")
    return value


def unpacked(body: bytes, most_bytes: int) -> bytes:
    """Return a gzip body, of which no more is unpacked than may be. Raises RequestRefused."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        plain = unpacker.decompress(body, most_bytes + 1)
    except zlib.error:
        raise invalid("the body is not gzip") from None
    if len(plain) > most_bytes:
        raise _too_large(most_bytes)
    if not unpacker.eof or unpacker.unused_data:
        raise invalid("the gzip body is incomplete")
    return plain


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
