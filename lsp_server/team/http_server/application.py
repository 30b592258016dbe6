"""The ASGI application: one engine, its routes, and the guard before them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.team.http_server.apply import apply_routes
from lsp_server.team.http_server.chat import chat_routes
from lsp_server.team.http_server.editor_routes import EditorRoutes, Repositories
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
from lsp_server.team.http_server.limits import RequestLimits, UsageByKey
from lsp_server.team.http_server.metrics import Metered, Metrics
from lsp_server.team.http_server.model_names import model_routes
from lsp_server.team.http_server.openai_completions import completion_routes
from lsp_server.team.http_server.served_engine import until_loaded


def app(
    engine: EngineInterface,
    keys: Keys,
    limits: RequestLimits | None = None,
    *,
    host_names: Collection[str] | None = None,
    repositories: Repositories | None = None,
    more_routes: Sequence[BaseRoute] = (),
    watch: Callable[[], Coroutine[Any, Any, None]] | None = None,
    metrics: Metrics | None = None,
) -> ASGIApp:
    """The server around an engine, whose process it starts and ends. ``host_names``: by which names
    it may be called, besides numbers; None: by any. ``repositories``: who answers for repository
    ids; ``watch``: what runs beside the requests."""
    limits = limits or RequestLimits()

    async def health(_request: Request) -> Response:
        ready = engine.status.state == "ready"
        return JSONResponse({"status": "ok" if ready else "unavailable"}, 200 if ready else 503)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await until_loaded(engine)
        watching = None if watch is None else asyncio.ensure_future(watch())
        if repositories is not None:
            repositories.start()
        try:
            yield
        finally:
            if watching is not None:
                watching.cancel()
            if repositories is not None:
                await repositories.close()
            await engine.close()

    inner = Starlette(
        routes=[
            Route(HEALTH, health, methods=["GET"]),
            *EditorRoutes(engine, limits, repositories).routes,
            *completion_routes(engine, limits),
            *chat_routes(engine, limits),
            *apply_routes(engine, limits),
            *infill_routes(engine, limits),
            *model_routes(engine),
            *more_routes,
        ],
        exception_handlers={
            RequestRefused: _error_response,
            HTTPException: _error_response,
            ClientDisconnect: _error_response,
            ClientLeft: _error_response,
            Exception: _error_response,
        },
        lifespan=lifespan,
    )
    guarded = Guard(inner, keys, UsageByKey(limits), host_names)
    return guarded if metrics is None else Metered(guarded, metrics)


def _error_response(_request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        if error.status_code == 405:
            return RequestRefused(405, "this path has another method", "wrong_method").response
        return not_found("there is nothing at this path").response
    if isinstance(error, ClientDisconnect):
        return RequestRefused(400, "the request broke off", "broken_off").response
    if isinstance(error, ClientLeft):
        return NoAnswer()
    return refusal_of(error).response
