"""Metrics for the people who run the server, at a separate address."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from lsp_server.contract.engine import EngineInterface
from lsp_server.http_server.metrics import CONTENT_TYPE, Metrics


def admin_app(engine: EngineInterface, metrics: Metrics) -> Starlette:
    """``/metrics``. It needs no key: let no one reach the address who should not read it."""

    async def metrics_text(_request: Request) -> Response:
        return PlainTextResponse(metrics.text(engine), headers={"content-type": CONTENT_TYPE})

    return Starlette(routes=[Route("/metrics", metrics_text, methods=["GET"])])
