"""``GET /v1/models``, ``GET /v1/models/ID`` and llama.cpp's ``GET /props``, and what the model is
called."""

from __future__ import annotations

import time
from pathlib import PurePath
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.version import VERSION
from lsp_server.team.http_server.errors import RequestRefused

_HUB_FOLDER = "models--"
"""How folders of Hugging Face's cache begin."""


def model_name(engine: EngineInterface) -> str:
    """Return the model's name without its folder; OWNER/NAME for one of Hugging Face's."""
    path = PurePath(engine.status.model)
    if path.suffix == ".gguf":
        return path.stem
    *_, hub_folder, snapshots, _snapshot = ("", "", "", *path.parts)
    if snapshots == "snapshots" and hub_folder.startswith(_HUB_FOLDER):
        return hub_folder.removeprefix(_HUB_FOLDER).replace("--", "/")
    return path.name


def is_called(engine: EngineInterface, name: str) -> bool:
    """Return True if ``name`` means the model, with or without owner and a file's ending."""
    return _plain(name) == _plain(model_name(engine))


def _plain(name: str) -> str:
    return name.rpartition("/")[2].lower().removesuffix(".gguf")


def model_routes(engine: EngineInterface) -> list[BaseRoute]:
    """Return the list of models, which has one, and that one."""
    started = int(time.time())

    def described() -> dict[str, Any]:
        tokens = engine.status.max_tokens
        return {
            "id": model_name(engine),
            "object": "model",
            "created": started,
            "owned_by": "redraft",
            # As vLLM, LM Studio's clients and llama.cpp name the context.
            "max_model_len": tokens,
            "context_length": tokens,
            "meta": {"n_ctx": tokens},
        }

    async def models(_request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [described()]})

    async def model(request: Request) -> Response:
        name = request.path_params["name"]
        if not is_called(engine, name):
            raise RequestRefused(404, "there is no model of this name", "model_not_found")
        return JSONResponse({**described(), "id": name})

    async def props(_request: Request) -> Response:
        status = engine.status
        settings = {"n_ctx": status.max_tokens, "params": {}}
        properties = {"default_generation_settings": settings, "total_slots": status.places}
        modalities = {"vision": False, "audio": False}
        properties |= {
            "model_path": model_name(engine),
            "chat_template": "",
            "modalities": modalities,
        }
        return JSONResponse({**properties, "build_info": f"redraft {VERSION}"})

    return [
        Route("/props", props, methods=["GET"]),
        Route("/v1/models", models, methods=["GET"]),
        Route("/v1/models/{name:path}", model, methods=["GET"]),
    ]
