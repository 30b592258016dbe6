"""What a server is: our own, or another that speaks OpenAI's protocol."""

from __future__ import annotations

from typing import Any

from lsp_server.errors import ServerUnavailable
from lsp_server.remote.connection import ServerConnection
from lsp_server.remote.redraft_server import RedraftServerModel
from lsp_server.remote.served_model import ServedModel
from lsp_server.server_protocol import PROTOCOL

OWN_MODEL = "/redraft/v1/model"
MODELS = "/v1/models"
LLAMA_SERVER = "llamacpp"
"""Owner of the models of llama-server, by what it says itself."""
NAMED_MODELS = 5


async def served_model(connection: ServerConnection, wanted: str = "") -> ServedModel:
    """The model that a server answers with; ``wanted``: which one, where it has several.

    Raises ServerUnavailable.
    """
    where = connection.address.url
    told = await connection.get(OWN_MODEL)
    if not isinstance(told, dict) or "protocol" not in told:
        return await _other_model(connection, wanted)
    if told["protocol"] != PROTOCOL:
        raise ServerUnavailable(
            f"the server {where} speaks version {told['protocol']} of the protocol, this "
            f"Redraft version {PROTOCOL}",
            "install the same version of Redraft here and there",
        )
    return RedraftServerModel(connection, told)


async def _other_model(connection: ServerConnection, wanted: str) -> ServedModel:
    # It brings NumPy along, which a daemon whose server drafts does without.
    from lsp_server.remote.openai_server import OpenAiModel

    where = connection.address.url
    told = await connection.get(MODELS)
    listed = told.get("data") if isinstance(told, dict) else None
    models = _by_name(listed if isinstance(listed, list) else [])
    if not models:
        raise ServerUnavailable(
            f"the server {where} has no model that Redraft can ask",
            "mend the setting redraft.server.url",
        )
    name = wanted or next(iter(models))
    if name not in models:
        known = ", ".join(list(models)[:NAMED_MODELS])
        raise ServerUnavailable(
            f"the server {where} has no model {name}", f"set redraft.server.model to one of {known}"
        )
    return OpenAiModel(connection, name, models[name].get("owned_by") == LLAMA_SERVER)


def _by_name(models: list[Any]) -> dict[str, dict[str, Any]]:
    named = [one for one in models if isinstance(one, dict) and isinstance(one.get("id"), str)]
    return {one["id"]: one for one in named}
