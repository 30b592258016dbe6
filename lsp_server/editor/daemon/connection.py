"""One editor's connection: bytes in, messages to its protocol object, bytes out."""

from __future__ import annotations

import asyncio
import json
import logging
from functools import lru_cache
from pathlib import Path
from typing import Any

from cattrs import Converter

from lsp_server.editor.handlers import register
from lsp_server.editor.hub.hub import Hub
from lsp_server.editor.protocol.jsonrpc import make_converter
from lsp_server.editor.server import RedraftServer
from lsp_server.engine.garbage import settle
from lsp_server.shared.errors import ProtocolError
from lsp_server.shared.processes.framing import MessageSplitter

logger = logging.getLogger(__name__)

READ_BYTES = 1 << 16
MAX_UNREAD_BYTES = 64 << 20
"""A client that lets so much pile up does not read any more."""


@lru_cache(maxsize=1)
def converter() -> Converter:
    """Return the converter of all connections: its functions are compiled once."""
    return make_converter()


class Writer:
    """A stream as pygls expects it. Never waits: what the client does not read is bounded."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        """Send bytes; the connection is cut when the client stopped reading."""
        transport = self._stream.transport
        if transport.is_closing():
            return
        if transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            logger.warning("a client does not read; its connection is closed")
            transport.abort()
            return
        self._stream.write(data)

    def close(self) -> None:
        """End the connection after what was sent."""
        self._stream.close()


def new_server(hub: Hub) -> RedraftServer:
    """Return the server of one editor, with all its handlers."""
    server = RedraftServer(hub, converter)
    register(server)
    return server


async def serve_connection(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    hub: Hub,
    environment: dict[str, str],
) -> None:
    """Serve one editor until it exits or goes away; ``environment``: its front's, of a server."""
    server = new_server(hub)
    server.environment = environment
    server.protocol.set_writer(Writer(writer))
    splitter = MessageSplitter()
    try:
        while not server.ended and (data := await reader.read(READ_BYTES)):
            for item in splitter.feed(data):
                if isinstance(item, ProtocolError):
                    server.protocol.reject(item)
                    continue
                server.protocol.receive(item)
                # A handler runs up to its first await now. So it reads its document, and an edit
                # begins to follow its region, before the next message changes the text.
                await asyncio.sleep(0)
    except ConnectionError:
        pass
    finally:
        server.leave()


_SAMPLES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("first_messages.json").read_text("utf-8")
)


def warm_up() -> None:
    """Do now what is slow the first time: the first editor would wait for it."""
    server = new_server(Hub())
    for sample in _SAMPLES:
        structured = server.protocol.structure_message({"jsonrpc": "2.0", **sample})
        json.dumps(structured, default=server.protocol._serialize_message)
    settle()
