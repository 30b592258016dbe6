"""Whether a server can be used: for ``redraft doctor``."""

from __future__ import annotations

from lsp_server.protocol.server_routes import PROTOCOL
from lsp_server.remote.address import ServerAddress
from lsp_server.remote.connection import ServerConnection
from lsp_server.remote.discovery import served_model


async def checked_server(url: str, key: str) -> str:
    """What a server that takes the key answers with, in one line. Raises ModelUnavailable."""
    connection = ServerConnection(ServerAddress.of(url), key)
    try:
        model = await served_model(connection)
    finally:
        await connection.close()
    where = connection.address.url
    if model.drafts:
        return f"{where} takes the key; {model.name} {model.dtype}, protocol version {PROTOCOL}"
    return f"{where} answers with {model.name}, undrafted: it is not Redraft's own"
