"""What a server is: our own, or another that speaks OpenAI's protocol."""

from __future__ import annotations

from lsp_server.errors import ServerUnavailable
from lsp_server.remote.connection import ServerConnection
from lsp_server.remote.redraft_server import PROTOCOL, RedraftServerModel
from lsp_server.remote.served_model import ServedModel

MODEL = "/redraft/v1/model"


async def served_model(connection: ServerConnection, wanted: str = "") -> ServedModel:
    """The model that a server answers with; ``wanted``: which one, where it has several.

    Raises ServerUnavailable.
    """
    where = connection.address.url
    told = await connection.get(MODEL)
    if not isinstance(told, dict) or "protocol" not in told:
        raise ServerUnavailable(
            f"the server {where} is none that Redraft can ask",
            "mend the setting redraft.server.url",
        )
    if told["protocol"] != PROTOCOL:
        raise ServerUnavailable(
            f"the server {where} speaks version {told['protocol']} of the protocol, this "
            f"Redraft version {PROTOCOL}",
            "install the same version of Redraft here and there",
        )
    return RedraftServerModel(connection, told)
