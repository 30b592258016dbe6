"""``redraft serve --in-process``: front, daemon, engine and indexer in one process, to debug in."""

from __future__ import annotations

import asyncio
import os
import socket
import threading

from lsp_server.connection import serve_connection, warm_up
from lsp_server.daemon.front import pass_input, pass_output
from lsp_server.daemon.hub import Hub
from lsp_server.log import start_log


def serve_in_process() -> int:
    """Serve one editor on stdin and stdout until it ends."""
    start_log("in-process", "debug")
    warm_up()
    editor, server = socket.socketpair()
    threading.Thread(target=pass_input, args=(editor,), daemon=True).start()
    output = threading.Thread(target=pass_output, args=(editor,), daemon=True)
    output.start()
    asyncio.run(_serve(server))
    output.join(1.0)
    # The threads of model, indexer and stdin may wait for what never comes.
    os._exit(0)


async def _serve(connection: socket.socket) -> None:
    hub = Hub(in_thread=True)
    reader, writer = await asyncio.open_connection(sock=connection)
    watching = asyncio.ensure_future(hub.watch())
    await serve_connection(reader, writer, hub)
    watching.cancel()
    writer.close()
    await asyncio.sleep(0)
