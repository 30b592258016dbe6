"""When a client has gone, every handler that still runs for it is stopped."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from lsp_server.editor.daemon.connection import new_server
from lsp_server.editor.hub.hub import Hub
from lsp_server.text.documents.allowed_files import AllowedFiles


def test_all_handlers_of_a_client_that_leaves_are_cancelled(tmp_path: Path) -> None:
    began, ended = [], []

    async def wait(_server: Any, params: Any) -> None:
        began.append(params["number"])
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            ended.append(params["number"])
            raise

    async def scene() -> None:
        server = new_server(Hub(allowed=AllowedFiles(tmp_path / "allowed.json")))
        server.protocol.initialized = True
        server.protocol.add_handler("redraft/wait", wait)
        for number in range(3):
            message = {"jsonrpc": "2.0", "id": number, "method": "redraft/wait"}
            server.protocol.receive(json.dumps({**message, "params": {"number": number}}).encode())
        await asyncio.sleep(0)
        server.leave()
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(scene())
    assert began == ended == [0, 1, 2]
