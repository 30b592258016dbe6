"""Documents that may hold secrets are never sent to a server, allowed by the user or not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from server_stand_in import KEY, Server, served

from lsp_server.editor.daemon.connection import new_server
from lsp_server.editor.hub.hub import Hub
from lsp_server.text.documents.allowed_files import AllowedFiles

SECRET = "plumsecretvalue"


class Editor:
    """Speaks LSP with a server object of this process."""

    def __init__(self, folder: Path, url: str, fallback: str) -> None:
        self.hub = Hub(allowed=AllowedFiles(folder.parent / "allowed.json"))
        self._server = new_server(self.hub)
        self._server.protocol.set_writer(self)  # type: ignore[arg-type]
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._folder = folder
        server = {"url": url, "key": KEY, "fallback": fallback}
        # A busy machine answers late.
        completion = {"timeoutMs": 60_000}
        self._settings = {"server": server, "index": {"enabled": False}, "completion": completion}

    def write(self, data: bytes) -> None:
        for part in data.split(b"Content-Length: ")[1:]:
            message = json.loads(part.partition(b"\r\n\r\n")[2])
            if "method" not in message:
                self._answers[message["id"]].set_result(message)

    def close(self) -> None: ...

    def tell(self, method: str, params: Any, **more: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params, **more}
        self._server.protocol.receive(json.dumps(message).encode())

    async def ask(self, method: str, params: Any) -> Any:
        number = len(self._answers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        self.tell(method, params, id=number)
        return await asyncio.wait_for(self._answers[number], 60)

    async def start(self) -> None:
        uri = self._folder.as_uri()
        await self.ask("initialize", {
            "processId": None, "rootUri": uri, "capabilities": {},
            "workspaceFolders": [{"uri": uri, "name": "w"}],
            "initializationOptions": {"settings": self._settings}})  # fmt: skip
        self.tell("initialized", {})

    def open(self, name: str, text: str) -> str:
        uri = (self._folder / name).as_uri()
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": item})
        return uri

    async def use(self, uri: str) -> Any:
        """Complete, edit and read ahead at the end of a document's first line."""
        document, place = {"uri": uri}, {"line": 1, "character": 0}
        span = {"start": {"line": 0, "character": 0}, "end": place}
        self.tell("redraft/cursor", {"textDocument": document, "position": place})
        self.tell("redraft/prepareEdit", {"textDocument": document, "range": span})
        asked = {"textDocument": document, "position": place, "context": {"triggerKind": 1}}
        answer = await self.ask("textDocument/inlineCompletion", asked)
        edit = {"textDocument": document, "range": span, "instruction": "make it better"}
        await self.ask("redraft/edit", edit)
        await self.ask("redraft/explain", {"textDocument": document, "position": place})
        return answer["result"]["items"]


@pytest.mark.parametrize("fallback", ["model", "none"])
async def test_no_secret_reaches_a_server(tmp_path: Path, fallback: str) -> None:
    """What the user allowed is completed by the model of this machine, where that may answer."""
    folder = tmp_path / "work"
    folder.mkdir()
    server = Server()
    async with served(server) as url:
        editor = Editor(folder, url, fallback)
        await editor.start()
        held_back = editor.open(".env", f"KEY={SECRET}\n\n")
        allowed = editor.open(".env.local", f"OTHER={SECRET}\n\n")
        await editor.ask(
            "workspace/executeCommand",
            {"command": "redraft.allowFile", "arguments": [{"uri": allowed}]},
        )
        assert await editor.use(held_back) == []
        assert bool(await editor.use(allowed)) is (fallback == "model")
        assert await editor.use(editor.open("plain.py", "plain_text = 1\n\n"))
        sent = json.dumps(server.asked)
        assert "plain_text" in sent
        assert SECRET not in sent
        assert ".env" not in sent
        await editor.hub.close()
