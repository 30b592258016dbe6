"""``redraft serve --in-process``: front, daemon, engine and indexer in one process, to debug in."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading

from lsp_server.daemon.connection import serve_connection, warm_up
from lsp_server.daemon.hub import Hub
from lsp_server.daemon.server_environment import server_environment
from lsp_server.documents.allowed_files import AllowedFiles, allowed_file
from lsp_server.processes.log import start_log


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


def pass_input(connection: socket.socket) -> None:
    """Editor to server; at the editor's end the server has a second to answer."""
    with contextlib.suppress(OSError):
        while data := os.read(0, 1 << 16):
            connection.sendall(data)
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
    timer = threading.Timer(0.8, os._exit, (0,))
    timer.daemon = True
    timer.start()


def pass_output(connection: socket.socket) -> None:
    """Server to editor, until either ends."""
    with contextlib.suppress(OSError):
        while data := connection.recv(1 << 16):
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]


async def _serve(connection: socket.socket) -> None:
    hub = Hub(in_thread=True, allowed=AllowedFiles(allowed_file()))
    reader, writer = await asyncio.open_connection(sock=connection)
    watching = asyncio.ensure_future(hub.watch())
    await serve_connection(reader, writer, hub, server_environment())
    watching.cancel()
    writer.close()
    await asyncio.sleep(0)
