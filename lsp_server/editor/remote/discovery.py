"""Finds out what a server is: our own, or another that speaks OpenAI's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from lsp_server.editor.remote.address import ServerAddress
from lsp_server.editor.remote.connection import ServerConnection
from lsp_server.editor.remote.listed_models import (
    LLAMA_SERVER,
    LM_STUDIO,
    OLLAMA,
    ListedModel,
    listed_models,
)
from lsp_server.editor.remote.redraft_server import RedraftServerModel
from lsp_server.shared.contract.codec import Unreadable
from lsp_server.shared.errors import ServerUnavailable
from lsp_server.shared.version import PROTOCOL

if TYPE_CHECKING:
    from lsp_server.editor.remote.openai_server import OpenAiModel

Transport: TypeAlias = "RedraftServerModel | OpenAiModel"
"""The way to a model on a server. Cancelling a question ends the work there."""

OWN_MODEL = "/redraft/v1/model"
MODELS = "/v1/models"
LM_STUDIO_MODELS = "/api/v0/models"
"""LM Studio's own list: types, architectures and contexts, which ``/v1/models`` lacks."""
OLLAMA_MODEL = "/api/show"
PROPERTIES = "/props"
"""llama-server's own description of the model that it has loaded."""
NAMED_MODELS = 5
SAME_VERSION = "install the same version of Redraft here and there"


async def served_model(connection: ServerConnection, name: str = "") -> Transport:
    """Return the model that a server answers with. ``name``: its name, if there are several. Raises
    ServerUnavailable."""
    where = connection.address.url
    facts = await connection.get(OWN_MODEL)
    if not isinstance(facts, dict) or "protocol" not in facts:
        return await _other_model(connection, name)
    if facts["protocol"] != PROTOCOL:
        raise ServerUnavailable(
            f"the server {where} speaks version {facts['protocol']} of the protocol, this "
            f"Redraft version {PROTOCOL}",
            SAME_VERSION,
        )
    try:
        return RedraftServerModel(connection, facts)
    except Unreadable as error:
        cause = f"the server {where} describes its model in another form ({error})"
        raise ServerUnavailable(cause, SAME_VERSION) from None


async def _other_model(connection: ServerConnection, name: str) -> Transport:
    # It loads NumPy, which a daemon whose server drafts does without.
    from lsp_server.editor.remote.openai_server import OpenAiModel

    models = listed_models(await connection.get(MODELS))
    if any(listed.owner == LM_STUDIO for listed in models):
        await _learn_from_list(connection, models)
    model = _chosen(models, name, connection.address.url)
    await _learn_more(connection, model, is_alone=len(models) == 1)
    return OpenAiModel(connection, model)


def _chosen(models: list[ListedModel], name: str, where: str) -> ListedModel:
    """Return the model asked for, else the first that writes text. Raises ServerUnavailable."""
    able = [model for model in models if model.writes]
    if not models or (not able and not name):
        none = "has no model that Redraft can ask" + (
            ": none of them writes text" if models else ""
        )
        raise ServerUnavailable(
            f"the server {where} {none}", "correct the setting redraft.server.url"
        )
    if not name:
        return able[0]
    names = ", ".join([model.name for model in able][:NAMED_MODELS])
    remedy = f"set redraft.server.model to one of {names}" if names else "ask another server"
    chosen = next((model for model in models if model.name == name), None)
    if chosen is None:
        raise ServerUnavailable(f"the server {where} has no model {name}", remedy)
    if chosen.is_said_not_to_write:
        raise ServerUnavailable(f"the model {name} of {where} writes no text", remedy)
    return chosen


async def _learn_from_list(connection: ServerConnection, models: list[ListedModel]) -> None:
    further = {
        listed.name: listed
        for listed in listed_models(await connection.optional_json(LM_STUDIO_MODELS))
    }
    for model in models:
        if model.name in further:
            model.learn(further[model.name].facts)


async def _learn_more(connection: ServerConnection, model: ListedModel, is_alone: bool) -> None:
    if model.owner == OLLAMA:
        model.learn(await connection.optional_json(OLLAMA_MODEL, {"model": model.name}))
        # It serves less than the model was trained for, and cuts a prompt without a word.
        model.facts.pop("context_length", None)
    elif model.owner == LLAMA_SERVER or is_alone:
        model.learn(await connection.optional_json(PROPERTIES))


async def checked_server(url: str, key: str) -> str:
    """Return what a server that takes the key answers with, in one line. Raises
    ModelUnavailable."""
    connection = ServerConnection(ServerAddress.of(url), key)
    try:
        model = await served_model(connection)
    finally:
        await connection.close()
    where, status = connection.address.url, model.status
    if model.drafts:
        described = f"{status.model} {status.dtype}"
        return f"{where} takes the key; {described}, protocol version {PROTOCOL}"
    return f"{where} answers with {status.model}, undrafted: it is not Redraft's own"
