"""A client of the server without an editor, to learn what the model at hand says somewhere."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from waiting import PATIENCE, wait_for

# As the editors' own settings here: a suggestion depends on the text of its own file alone.
SETTINGS = {"context": {"crossFile": False}}

# Code points, which is how Python counts.
CAPABILITIES = {
    "general": {"positionEncodings": ["utf-32"]},
    "textDocument": {
        "inlineCompletion": {},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["refactor.rewrite"]}},
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
    },
}


class Refused(Exception):
    """The server answered a request with an error."""


Answer = Callable[[str, Any], Any]
"""The result of a request that the server makes, from its method and parameters."""


class LanguageClient:
    """Speaks to ``redraft serve`` with one folder open. A context manager.

    ``params`` are those of ``initialize``, the folder apart.
    """

    def __init__(
        self,
        command: Path,
        folder: Path,
        params: dict[str, Any] | None = None,
        answer: Answer = lambda _method, _params: None,
    ) -> None:
        self._folder = folder
        options = {"initializationOptions": {"settings": SETTINGS}, "capabilities": CAPABILITIES}
        self._params = options if params is None else params
        self._answer = answer
        self._sending = threading.Lock()
        self._process = subprocess.Popen(
            [str(command), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._count = 0
        assert self._process.stdout is not None
        reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        reader.start()

    def __enter__(self) -> LanguageClient:
        folder = {"uri": self._folder.as_uri(), "name": self._folder.name}
        asked = {
            "processId": None,
            "rootUri": folder["uri"],
            "rootPath": str(self._folder),
            "workspaceFolders": [folder],
            **self._params,
        }
        self.request("initialize", asked)
        self.notify("initialized", {})
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait(10)

    def wait_ready(self) -> None:
        """Until the model is loaded and the folder indexed, as they are when an editor asks."""
        wait_for(lambda: self.request("redraft/status", {})["state"] == "ready", "ready server")

    def open(self, path: Path, text: str, language: str = "python") -> dict[str, str]:
        """Open a document with a text of our own. Its identifier."""
        uri = path.as_uri()
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return {"uri": uri}

    def close(self, document: dict[str, str]) -> None:
        """Close a document."""
        self.notify("textDocument/didClose", {"textDocument": document})

    def notify(self, method: str, params: Any) -> None:
        """Send a message that has no answer."""
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any, timeout_s: float = 120.0) -> Any:
        """The result of a request. Raises Refused with the server's message."""
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        while True:
            message = self._answers.get(timeout=timeout_s * PATIENCE)
            if message is None:
                raise Refused("the server ended")
            if message.get("id") != self._count:
                continue
            if "error" in message:
                raise Refused(str(message["error"]["message"]))
            return message.get("result")

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        with self._sending:
            self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self._process.stdin.flush()

    def _read(self, stream: IO[bytes]) -> None:
        while length := _content_length(stream):
            message = json.loads(stream.read(length))
            if "method" not in message:
                self._answers.put(message)
            elif "id" in message:
                result = self._answer(message["method"], message.get("params"))
                self._send({"id": message["id"], "result": result})
        self._answers.put(None)


def _content_length(stream: IO[bytes]) -> int:
    """Reads the headers of a message; 0 at the end of the stream."""
    length = 0
    while line := stream.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return length
