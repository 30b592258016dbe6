"""A session with the real server, as an editor has one: it opens, types, asks and edits."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from lsp_server.commands.demo.client import DemoClient, private_environment, serve_command
from lsp_server.shared.errors import RedraftError

READY_S = 900.0
"""The first time the model is compiled and measured: a minute or two on two cores."""
STOP_S = 60.0
CAPABILITIES = {
    "general": {"positionEncodings": ["utf-32"]},
    "window": {"workDoneProgress": True},
    "workspace": {"workspaceFolders": True},
    "textDocument": {"inlineCompletion": {}, "synchronization": {}},
}


class Readiness:
    """The server's reports of its model and its index."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_indexed = False
        self._status: dict[str, Any] = {"state": "loading", "message": "starting", "compiling": ""}
        self._index = ""

    def hear(self, method: str, params: Any) -> None:
        """Called for every notification, on the thread that reads."""
        with self._changed:
            if method == "redraft/status":
                self._status = params
            elif method == "$/progress":
                value = params["value"]
                self._index = value.get("message") or self._index
                self._is_indexed |= value["kind"] == "end"
            self._changed.notify_all()

    @property
    def _missing(self) -> str:
        status = self._status
        if status["state"] in ("loading", "error"):
            return f"{status['message']} {status.get('remedy') or ''}".strip()
        if status["compiling"]:
            return f"compiling {status['compiling']}, this once"
        return "" if self._is_indexed else f"indexing {self._index}"

    def wait(self, report: Callable[[str], None], limit_s: float = READY_S) -> None:
        """Wait until the model is loaded and compiled and the index built; ``report`` hears why.
        Raises RedraftError where that fails or takes too long."""
        ends = time.monotonic() + limit_s
        with self._changed:
            while missing := self._missing:
                if self._status["state"] == "error" or time.monotonic() >= ends:
                    raise RedraftError(f"the server is not ready: {missing}")
                report(missing)
                self._changed.wait(max(0.0, ends - time.monotonic()))


class EditorSession:
    """One editor with one workspace and a daemon of its own; everything that the server writes
    stays below ``folder``."""

    def __init__(self, folder: Path, root: Path, model: str) -> None:
        self._readiness = Readiness()
        self._environment = private_environment(folder)
        self.client = DemoClient(
            serve_command(), self._environment, self._readiness.hear, folder / "server.log"
        )
        uri = root.as_uri()
        self.client.request(
            "initialize",
            {
                "processId": None,
                "clientInfo": {"name": "redraft demo"},
                "initializationOptions": {"settings": {"model": {"path": model}}},
                "rootUri": uri,
                "workspaceFolders": [{"uri": uri, "name": root.name}],
                "capabilities": CAPABILITIES,
            },
        )
        self.client.notify("initialized", {})

    def wait(self, report: Callable[[str], None]) -> None:
        """Until the server is ready. Raises RedraftError."""
        self._readiness.wait(report)

    def open(self, path: Path, text: str) -> OpenDocument:
        """Open a document; nothing is written to disk."""
        return OpenDocument(self.client, path.as_uri(), text)

    def close(self) -> None:
        """Shut front and daemon down."""
        self.client.close()
        stop = [*serve_command()[:-1], "stop"]
        subprocess.run(
            stop, env=self._environment, capture_output=True, timeout=STOP_S, check=False
        )


class OpenDocument:
    """A document that is open in an editor. Offsets count code points."""

    def __init__(self, client: DemoClient, uri: str, text: str) -> None:
        self.text, self._client, self._version = text, client, 1
        self._document = {"uri": uri}
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        client.notify("textDocument/didOpen", {"textDocument": item})

    def insert(self, offset: int, text: str) -> None:
        """Type text."""
        place = self._place(offset)
        self.text = self.text[:offset] + text + self.text[offset:]
        self._change({"range": {"start": place, "end": place}, "text": text})

    def delete(self, start: int, end: int) -> None:
        """Delete a stretch."""
        where = {"start": self._place(start), "end": self._place(end)}
        self.text = self.text[:start] + self.text[end:]
        self._change({"range": where, "text": ""})

    def replace(self, text: str) -> None:
        """Another text altogether."""
        self.text = text
        self._change({"text": text})

    def ask(self, offset: int, kind: int = 2) -> tuple[int, Future[Any]]:
        """Ask for a suggestion, unasked (2) or by a key (1); its id and its answer."""
        params = {**self._at(offset), "context": {"triggerKind": kind}}
        return self._client.start("textDocument/inlineCompletion", params)

    def ask_next_edit(self, offset: int) -> Future[Any]:
        """Ask for next edits; their answer."""
        return self._client.start("redraft/nextEdit", self._at(offset))[1]

    def explain(self, offset: int, *, plain: bool = False) -> dict[str, Any]:
        """Return a completion by the model alone, and where its text came from."""
        params = {**self._at(offset), "plain": plain}
        explained: dict[str, Any] = self._client.request("redraft/explain", params)
        return explained

    def edited(
        self,
        lines: tuple[int, int],
        instruction: str,
        *,
        plain: bool = False,
        limit_s: float = 120.0,
    ) -> dict[str, Any]:
        """Edit lines by an instruction and return ``text``, ``diff`` and ``statistics``. Lines
        count from 0, the second one excluded. Raises ServerFailed if the server refuses."""
        start, end = ({"line": line, "character": 0} for line in lines)
        params = {
            "textDocument": {**self._document, "version": self._version},
            "range": {"start": start, "end": end},
            "instruction": instruction,
            "plain": plain,
        }
        answer: dict[str, Any] = self._client.request("redraft/edit", params, limit_s)
        return answer

    def close(self) -> None:
        """Close the document."""
        self._client.notify("textDocument/didClose", {"textDocument": self._document})

    def _change(self, change: dict[str, Any]) -> None:
        self._version += 1
        document = {**self._document, "version": self._version}
        params = {"textDocument": document, "contentChanges": [change]}
        self._client.notify("textDocument/didChange", params)

    def _at(self, offset: int) -> dict[str, Any]:
        return {"textDocument": self._document, "position": self._place(offset)}

    def _place(self, offset: int) -> dict[str, int]:
        line = self.text.count("\n", 0, offset)
        return {"line": line, "character": offset - (self.text.rfind("\n", 0, offset) + 1)}
