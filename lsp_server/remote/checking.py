"""Checks for ``redraft doctor`` whether a server can be used."""

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
    where, status = connection.address.url, model.status
    if model.drafts:
        known = f"{status.model} {status.dtype}"
        return f"{where} takes the key; {known}, protocol version {PROTOCOL}"
    return f"{where} answers with {status.model}, undrafted: it is not Redraft's own"
