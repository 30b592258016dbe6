"""``GET /v1/models``, and what the model is called."""

from __future__ import annotations

import time
from pathlib import PurePath

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from lsp_server.http_server.served_engine import ServedEngine


def model_name(engine: ServedEngine) -> str:
    """The model by name: where it lies is nobody's business."""
    path = PurePath(engine.model)
    return path.stem if path.suffix == ".gguf" else path.name


def model_routes(engine: ServedEngine) -> list[BaseRoute]:
    """The list of models, which has one."""
    started = int(time.time())

    async def models(_request: Request) -> Response:
        model = {
            "id": model_name(engine),
            "object": "model",
            "created": started,
            "owned_by": "redraft",
        }
        return JSONResponse({"object": "list", "data": [model]})

    return [Route("/v1/models", models, methods=["GET"])]
