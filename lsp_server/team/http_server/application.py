"""The ASGI application: one engine, its routes, and the guard before them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from lsp_server.engine.client import EngineClient
from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.errors import EngineUnavailable, ModelUnavailable
from lsp_server.tasks.apply.bounded import BoundedEdits
from lsp_server.team.http_server.apply import apply_routes
from lsp_server.team.http_server.chat import chat_routes
from lsp_server.team.http_server.editor_routes import editor_routes
from lsp_server.team.http_server.errors import (
    ClientLeft,
    NoAnswer,
    RequestRefused,
    not_found,
    refusal_of,
)
from lsp_server.team.http_server.guard import HEALTH, Guard
from lsp_server.team.http_server.infill import infill_routes
from lsp_server.team.http_server.keys import Keys
from lsp_server.team.http_server.metrics import Metered, Metrics
from lsp_server.team.http_server.model_names import model_routes
from lsp_server.team.http_server.ollama import ollama_routes
from lsp_server.team.http_server.openai_completions import completion_routes
from lsp_server.team.http_server.rate_limits import RequestLimits, UsageByKey
from lsp_server.team.http_server.responses import responses_routes

WATCH_S = 0.1


def app(
    engine: EngineInterface,
    keys: Keys,
    limits: RequestLimits | None = None,
    *,
    host_names: Collection[str] | None = None,
    watch: Callable[[], Coroutine[Any, Any, None]] | None = None,
    metrics: Metrics | None = None,
) -> ASGIApp:
    """Return the server around an engine, whose process it starts and ends. ``host_names``: by
    which names it may be called, besides numbers; None: by any. ``watch``: what runs beside the
    requests."""
    limits, edits = limits or RequestLimits(), BoundedEdits()

    async def health(_request: Request) -> Response:
        ready = engine.status.state == "ready"
        return JSONResponse({"status": "ok" if ready else "unavailable"}, 200 if ready else 503)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await until_loaded(engine)
        watching = None if watch is None else asyncio.ensure_future(watch())
        try:
            yield
        finally:
            if watching is not None:
                watching.cancel()
            await edits.close()
            await engine.close()

    routes = [
        Route(HEALTH, health, methods=["GET"]),
        *editor_routes(engine, limits),
        *completion_routes(engine, limits),
        *chat_routes(engine, limits),
        *responses_routes(engine, limits),
        *apply_routes(engine, limits),
        *infill_routes(engine, limits),
        *model_routes(engine),
        *ollama_routes(engine, limits),
    ]
    answered = (RequestRefused, HTTPException, ClientDisconnect, ClientLeft, Exception)
    respond = partial(_error_response, ", ".join(_named(routes)))
    handlers: dict[Any, Any] = dict.fromkeys(answered, respond)
    inner = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    inner.state.edits = edits
    guarded = Guard(inner, keys, UsageByKey(limits), host_names)
    return guarded if metrics is None else Metered(guarded, metrics)


def _named(routes: Sequence[BaseRoute]) -> Iterator[str]:
    """Yield the routes for clients of other APIs, as a person reads them."""
    for route in routes:
        if isinstance(route, Route) and not route.path.startswith("/redraft/"):
            yield f"{'POST' if 'POST' in (route.methods or ()) else 'GET'} {route.path}"


def _error_response(routes: str, request: Request, error: Exception) -> Response:
    if isinstance(error, ClientLeft):
        return NoAnswer()
    if isinstance(error, HTTPException) and error.status_code == 405:
        refused = RequestRefused(405, "this path has another method", "wrong_method")
    elif isinstance(error, HTTPException):
        refused = not_found(f"there is nothing at this path; there is {routes}")
    elif isinstance(error, ClientDisconnect):
        refused = RequestRefused(400, "the request broke off", "broken_off")
    else:
        refused = refusal_of(error)
    return refused.response_at(request.scope["path"])


async def until_loaded(engine: EngineInterface) -> None:
    """Start the engine, and wait until it has its model. Raises EngineUnavailable, OSError."""
    await engine.start()
    while engine.status.state != "ready":
        status = engine.status
        if status.state == "failed":
            raise ModelUnavailable(status.message, status.remedy)
        if status.state == "idle":
            raise EngineUnavailable("the engine ended while it started; its log says why")
        await asyncio.sleep(WATCH_S)


async def watch(engine: EngineClient) -> None:
    """End an engine that hangs; start one that ended, before the next request needs it."""
    while True:
        await asyncio.sleep(WATCH_S)
        if engine.hung:
            engine.restart()
        if engine.status.state == "idle" and not engine.refused:
            try:
                await engine.start()
            except (ModelUnavailable, OSError):
                continue
