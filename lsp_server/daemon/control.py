"""Asks the running daemon for something other than LSP. Standard library only."""

from __future__ import annotations

import json
from typing import Any

from lsp_server.daemon.address import socket_path
from lsp_server.daemon.front import connect


def ask_daemon(command: str) -> dict[str, Any] | None:
    """The daemon's answer to ``status``, ``stop`` or ``models``, which tells it that others were
    chosen; None when no daemon of this build runs."""
    connection = connect(socket_path(), {"command": command}, start=False)
    if connection is None:
        return None
    with connection:
        data = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    answer: dict[str, Any] = json.loads(data or b"{}")
    return answer
