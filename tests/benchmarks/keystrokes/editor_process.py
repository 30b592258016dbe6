"""A small LSP client over the pipes of a real ``redraft serve`` process."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any

from accel.native.python_process import python_command
from lsp_server.shared.errors import RedraftError

Message = dict[str, Any]


class ServerFailed(RedraftError):
    """The server ended or answered with an error."""


class EditorProcess:
    """Sends requests and notifications; answers the server's own requests as an editor must.
    ``on_notification`` is called with (method, params) on the reading thread."""

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        on_notification: Callable[[str, Any], None],
        log: Path,
    ) -> None:
        self._log = log.open("wb")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
        )
        self._log_path = log
        self._on_notification = on_notification
        self._pending: dict[int, Future[Any]] = {}
        self._outgoing: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._next_id = 0
        self._lock = threading.Lock()
        self._ended = False
        """The server sends nothing any more."""
        for target in (self._read, self._write):
            threading.Thread(target=target, daemon=True).start()

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self._process.pid

    def request(self, method: str, params: Any, timeout_s: float = 120.0) -> Any:
        """Return the result of a request. Raises ServerFailed on an error, a timeout or a dead
        server."""
        _, future = self.start(method, params)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            raise ServerFailed(
                f"no answer to {method} in {timeout_s:.0f} s{self._hint()}"
            ) from None

    def start(self, method: str, params: Any) -> tuple[int, Future[Any]]:
        """Send a request; its id, by which it can be cancelled, and its result to come."""
        future: Future[Any] = Future()
        with self._lock:
            self._next_id += 1
            if self._ended:
                future.set_exception(ServerFailed(f"the server ended{self._hint()}"))
                return self._next_id, future
            self._pending[self._next_id] = future
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        self._outgoing.put(message)
        return self._next_id, future

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._outgoing.put({"jsonrpc": "2.0", "method": method, "params": params})

    def close(self) -> None:
        """Shut the server down as an editor does, and wait for its process to end."""
        if self._process.poll() is None and not self._ended:
            self.request("shutdown", None, 20)
            self.notify("exit", None)
        self._outgoing.put(None)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()

    def _hint(self) -> str:
        """Return the end of the log, which may be deleted later."""
        written = self._log_path.read_text("utf-8", errors="replace").splitlines()
        return "; its log ends with: " + " | ".join(written[-3:]) if written else ""

    def _write(self) -> None:
        assert self._process.stdin is not None
        while (message := self._outgoing.get()) is not None:
            body = json.dumps(message).encode()
            try:
                self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                self._process.stdin.flush()
            except (BrokenPipeError, OSError):
                return

    def _read(self) -> None:
        assert self._process.stdout is not None
        while (message := _read_message(self._process.stdout)) is not None:
            if "method" not in message:
                self._answered(message)
            elif "id" in message:
                self._outgoing.put({"jsonrpc": "2.0", "id": message["id"], "result": None})
            else:
                self._on_notification(message["method"], message.get("params"))
        with self._lock:
            self._ended = True
        for future in self._pending.values():
            if not future.done():
                future.set_exception(ServerFailed(f"the server ended{self._hint()}"))

    def _answered(self, message: Message) -> None:
        future = self._pending.pop(message["id"])
        if "error" in message:
            future.set_exception(ServerFailed(message["error"].get("message", "unknown error")))
        else:
            future.set_result(message.get("result"))


def _read_message(stream: IO[bytes]) -> Message | None:
    length = 0
    while line := stream.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    if not length:
        return None
    message: Message = json.loads(stream.read(length))
    return message


def serve_command() -> list[str]:
    """Return the command line of the server of this installation."""
    return python_command("lsp_server", "serve")


def private_environment(folder: Path) -> dict[str, str]:
    """Return an environment in which the server keeps everything it writes below ``folder``: it
    meets no daemon of the user's and leaves no stores behind."""
    environment = dict(os.environ)
    for name in ("CACHE_HOME", "CONFIG_HOME", "DATA_HOME", "STATE_HOME", "RUNTIME_DIR"):
        variable = f"XDG_{name}"
        path = folder / variable.removeprefix("XDG_").lower()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        environment[variable] = str(path)
    return environment
