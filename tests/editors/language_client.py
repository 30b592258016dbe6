"""A client of the server without an editor, to learn what the model at hand says somewhere."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Any

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


class LanguageClient:
    """Speaks to ``redraft serve`` with one folder open. A context manager."""

    def __init__(self, command: Path, folder: Path) -> None:
        self._folder = folder
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
        self.request(
            "initialize",
            {
                "processId": None,
                "rootUri": folder["uri"],
                "workspaceFolders": [folder],
                "capabilities": CAPABILITIES,
            },
        )
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
            message = self._answers.get(timeout=timeout_s)
            if message is None:
                raise Refused("the server ended")
            if message.get("id") != self._count or "method" in message:
                continue
            if "error" in message:
                raise Refused(str(message["error"]["message"]))
            return message.get("result")

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _read(self, stream: IO[bytes]) -> None:
        while length := _content_length(stream):
            self._answers.put(json.loads(stream.read(length)))
        self._answers.put(None)


def _content_length(stream: IO[bytes]) -> int:
    """Reads the headers of a message; 0 at the end of the stream."""
    length = 0
    while line := stream.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return length
