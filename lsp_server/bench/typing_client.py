"""An editor for ``redraft bench typing``: documents, requests that can be cancelled."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from lsp_server.demo.client import Client, ServerFailed, private_environment, serve_command

READY_S = 300.0
CAPABILITIES = {
    "general": {"positionEncodings": ["utf-32"]},
    "textDocument": {"inlineCompletion": {}},
}


class TypingClient:
    """One editor on a daemon of its own, with the file's folder as workspace."""

    def __init__(self, folder: Path, file: Path, model: str | None) -> None:
        self._folder = file.parent
        self._ready = threading.Event()
        self._failed = ""
        self._client = Client(
            serve_command(), private_environment(folder), self._notified, folder / "front.log"
        )
        uri = self._folder.as_uri()
        self._client.request(
            "initialize",
            {
                "processId": None,
                "rootUri": uri,
                "workspaceFolders": [{"uri": uri, "name": "typing"}],
                "capabilities": CAPABILITIES,
                "initializationOptions": {"settings": {"model": {"path": model or ""}}},
            },
        )
        self._client.notify("initialized", {})

    def _notified(self, method: str, params: Any) -> None:
        if method == "redraft/status" and params["state"] in ("ready", "error"):
            self._failed = params["message"] if params["state"] == "error" else ""
            self._ready.set()

    def wait_until_ready(self) -> None:
        """Until model and index are there, and the event loop is watched."""
        if not self._ready.wait(READY_S):
            raise ServerFailed("model and index were not ready in time")
        if self._failed:
            raise ServerFailed(self._failed)
        self._client.request("redraft/measurements", {})

    def open(self, name: str, text: str) -> TypedDocument:
        """Open a document beside the file; nothing is written to disk."""
        uri = (self._folder / name).as_uri()
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self._client.notify("textDocument/didOpen", {"textDocument": item})
        return TypedDocument(self._client, uri, text)

    def cancel(self, msg_id: int) -> None:
        """Cancel a request."""
        self._client.notify("$/cancelRequest", {"id": msg_id})

    def measurements(self) -> dict[str, Any]:
        """Times that the daemon took."""
        measured: dict[str, Any] = self._client.request("redraft/measurements", {})
        return measured

    def close(self) -> None:
        """End the front; its daemon leaves with its folder."""
        self._client.close()


class TypedDocument:
    """A document that is being typed into."""

    def __init__(self, client: Client, uri: str, text: str) -> None:
        self._client = client
        self._uri = uri
        self._text = text
        self._version = 1

    def insert(self, offset: int, text: str) -> None:
        """Type text."""
        place = self._place(offset)
        self._text = self._text[:offset] + text + self._text[offset:]
        self._version += 1
        change = {"range": {"start": place, "end": place}, "text": text}
        self._client.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": self._uri, "version": self._version},
                "contentChanges": [change],
            },
        )

    def ask(self, offset: int) -> tuple[int, Future[Any]]:
        """Ask for a suggestion; its id and its answer."""
        return self._client.start(
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": self._uri},
                "position": self._place(offset),
                "context": {"triggerKind": 2},
            },
        )

    def _place(self, offset: int) -> dict[str, int]:
        line = self._text.count("\n", 0, offset)
        return {"line": line, "character": offset - (self._text.rfind("\n", 0, offset) + 1)}
