"""A raw-bytes LSP driver of a real ``redraft serve`` process. Shares no code with the server."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from small_model import choose_small_model

Message = dict[str, Any]
REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "tests" / "data"
PYTHON = "REDRAFT_TEST_PYTHON"
"""Names the interpreter in an environment, where it is not the one that runs the tests."""


def private_environment(folder: Path, **more: str) -> dict[str, str]:
    """An environment whose daemon, stores and logs all live below ``folder``."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("REDRAFT_", "XDG_"))
    }
    environment["HOME"] = str(folder)
    for name in ("CACHE_HOME", "DATA_HOME", "STATE_HOME", "CONFIG_HOME", "RUNTIME_DIR"):
        place = folder / name.lower()
        place.mkdir(mode=0o700, exist_ok=True)
        environment[f"XDG_{name}"] = str(place)
    choose_small_model(folder / "config_home")
    answer = folder / "state_home" / "redraft" / "setup.json"
    answer.parent.mkdir(mode=0o700, exist_ok=True)
    answer.write_text('{"answer": "in a test"}')
    return {**environment, "OMP_NUM_THREADS": "1", "REDRAFT_IDLE_EXIT_S": "20", **more}


def redraft(environment: dict[str, str]) -> list[str]:
    """The command line of ``redraft``."""
    return [environment.get(PYTHON, sys.executable), "-m", "lsp_server"]


class Driver:
    """Speaks LSP with a server process over its standard pipes."""

    def __init__(
        self, environment: dict[str, str], arguments: tuple[str, ...] = (), cwd: Path | None = None
    ) -> None:
        self.process = subprocess.Popen(
            [*redraft(environment), "serve", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=cwd or REPOSITORY,
        )
        self._begin(self.process.stdin, self.process.stdout)

    def _begin(self, to_server: Any, from_server: Any) -> None:
        self._to_server, self._from_server = to_server, from_server
        self.notifications: list[Message] = []
        self.asked: list[Message] = []
        self.configuration: Any = None
        self.applied: list[Any] = []
        self.chosen: Any = None
        """What the user presses in a message."""
        self._answers: dict[Any, queue.Queue[Message]] = {}
        self.other: queue.Queue[Message] = queue.Queue()
        self._next = 0
        self._arrived = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    # Sending

    def send_bytes(self, data: bytes) -> None:
        self._to_server.write(data)
        self._to_server.flush()

    def send(self, message: Message) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def notify(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def start(self, method: str, params: Any, msg_id: Any = None) -> Any:
        """Send a request; ``answer(id)`` waits for it."""
        self._next += 1
        msg_id = self._next if msg_id is None else msg_id
        self._answers[msg_id] = queue.Queue()
        self.send({"id": msg_id, "method": method, "params": params})
        return msg_id

    def answer(self, msg_id: Any, timeout: float = 120) -> Message:
        try:
            return self._answers[msg_id].get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"request {msg_id} was not answered in {timeout} s") from None

    def request(self, method: str, params: Any, timeout: float = 120) -> Any:
        answer = self.answer(self.start(method, params), timeout)
        assert "error" not in answer, answer
        return answer["result"]

    # Receiving

    def _read(self) -> None:
        while (message := read_message(self._from_server)) is not None:
            if "method" in message and "id" in message:
                self._serve(message)
            elif "method" in message:
                with self._arrived:
                    self.notifications.append({**message, "at": time.monotonic()})
                    self._arrived.notify_all()
            elif message.get("id") in self._answers:
                self._answers[message["id"]].put({**message, "at": time.monotonic()})
            else:
                self.other.put(message)

    def _serve(self, message: Message) -> None:
        result: Any = None
        if message["method"] == "workspace/configuration":
            asked = message["params"]["items"]
            # Who has none is asked for nothing more than it said when it began.
            told = None if self.configuration is None else without_gate(self.configuration)
            result = [told for _ in asked]
        elif message["method"] == "window/showMessageRequest":
            result = self.chosen
        elif message["method"] == "workspace/applyEdit":
            self.applied.append(message["params"])
            result = {"applied": True}
        self.asked.append(message)
        self.send({"id": message["id"], "result": result})

    def wait_for(self, wanted: Any, timeout: float = 120) -> Message:
        """The first notification for which ``wanted(message)`` holds."""
        deadline = time.monotonic() + timeout
        seen = 0
        with self._arrived:
            while True:
                for message in self.notifications[seen:]:
                    if wanted(message):
                        return message
                seen = len(self.notifications)
                left = deadline - time.monotonic()
                assert left > 0, "the notification did not come"
                self._arrived.wait(left)

    def wait_for_state(self, *states: str, timeout: float = 120) -> Message:
        """The first status that is one of ``states``."""
        return self.wait_for(
            lambda message: (
                message["method"] == "redraft/status" and message["params"]["state"] in states
            ),
            timeout,
        )["params"]

    # A session

    def initialize(self, profile: Message, folder: Path | None = None, **options: Any) -> Message:
        uri = folder.as_uri() if folder else None
        params = {
            **profile,
            "processId": os.getpid(),
            "rootUri": uri,
            "workspaceFolders": [{"uri": uri, "name": "workspace"}] if uri else None,
        }
        told = options or params.get("initializationOptions") or {}
        settings = without_gate(told.get("settings"))
        params["initializationOptions"] = {**told, "settings": settings}
        result = self.request("initialize", params, 30)
        self.notify("initialized", {})
        return result

    def open(self, uri: str, text: str, language: str = "python", version: int = 1) -> None:
        item = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def insert(self, uri: str, version: int, line: int, character: int, text: str) -> None:
        place = {"line": line, "character": character}
        change = {"range": {"start": place, "end": place}, "text": text}
        self.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]},
        )

    def close(self, timeout: float = 120) -> int:
        """Shut down in order; the exit code."""
        if self.process.poll() is None:
            self.request("shutdown", None, timeout)
            self.notify("exit", None)
        return self.process.wait(timeout)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)


class DaemonDriver(Driver):
    """Speaks with the daemon that runs, without a front: no process is started for it."""

    def __init__(self, environment: dict[str, str]) -> None:
        wait_until(lambda: self._joins(environment))
        self._begin(self._connection.makefile("wb"), self._stream)

    def _joins(self, environment: dict[str, str]) -> bool:
        connection = asked_daemon(environment, {"command": "lsp", "server": {}})
        if connection is not None:
            self._connection, self._stream = connection
        return connection is not None

    def close(self, timeout: float = 120) -> int:
        """Shut down in order; 0 when the daemon has ended the connection."""
        self.request("shutdown", None, timeout)
        self.notify("exit", None)
        self._reader.join(timeout)
        assert not self._reader.is_alive()
        return 0

    def kill(self) -> None:
        self._connection.shutdown(socket.SHUT_RDWR)
        self._reader.join(60)
        self._connection.close()


def asked_daemon(
    environment: dict[str, str], hello: dict[str, Any]
) -> tuple[socket.socket, Any] | None:
    """A connection to the only daemon of an environment and what it says after its greeting; None
    where there is none."""
    sockets = list(Path(environment["XDG_RUNTIME_DIR"], "redraft").glob("*.sock"))
    assert len(sockets) <= 1, sockets
    connection = socket.socket(socket.AF_UNIX)
    try:
        for path in sockets:
            connection.connect(str(path))
            connection.sendall(json.dumps(hello).encode() + b"\n")
            stream = connection.makefile("rb")
            if stream.readline().startswith(b"redraft "):
                return connection, stream
    except ConnectionError:
        pass
    connection.close()
    return None


def without_gate(settings: Any) -> Any:
    """Settings that show all that the model writes, unless they name a gate: most tests look at
    what the model says, however sure it is."""
    if settings is not None and not isinstance(settings, dict):
        return settings
    completion = (settings or {}).get("completion", {})
    if not isinstance(completion, dict):
        return settings
    return {**(settings or {}), "completion": {"gate": "off", **completion}}


def inline(uri: str, line: int, character: int, kind: int = 2, **context: Any) -> Message:
    """Parameters of ``textDocument/inlineCompletion``."""
    return {
        "textDocument": {"uri": uri},
        "position": {"line": line, "character": character},
        "context": {"triggerKind": kind, **context},
    }


def read_message(stream: Any) -> Message | None:
    length = None
    while True:
        line = stream.readline()
        if not line:
            return None
        if line in (b"\r\n", b"\n"):
            break
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    assert length is not None, "a message without Content-Length"
    message: Message = json.loads(stream.read(length))
    return message


def profile(name: str) -> dict[str, Any]:
    """The initialize parameters that a real editor sent."""
    loaded: dict[str, Any] = json.loads((DATA / f"client_{name}.json").read_text())
    return loaded


def command(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*redraft(environment), *words],
        env=environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def status(environment: dict[str, str]) -> dict[str, Any]:
    shown = command(environment, "status", "--json")
    loaded: dict[str, Any] = json.loads(shown.stdout)
    return loaded


def daemon_status(environment: dict[str, str]) -> dict[str, Any]:
    """What ``status`` is, of the only daemon, without a process that asks."""
    asked = asked_daemon(environment, {"command": "status"})
    if asked is None:
        return {"running": False}
    connection, stream = asked
    with connection:
        told: dict[str, Any] = json.loads(stream.read() or b'{"running": false}')
    return told


def greeted(environment: dict[str, str]) -> Driver:
    """A client that has said initialize and no more."""
    driver = Driver(environment)
    params = {**profile("neovim"), "processId": None, "rootUri": None}
    driver.request("initialize", params, 60)
    return driver


def wait_until_ready(driver: Driver, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while (told := driver.request("redraft/status", {}))["state"] != "ready":
        assert time.monotonic() < deadline, told
        time.sleep(0.05)


def wait_until(holds: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
