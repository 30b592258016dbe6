"""The servers as people start them, without an option: ``redraft serve`` for an editor and
``redraft serve-http`` for a team, in a home of their own."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from accel.native.machine_code import CACHE_DIR
from lsp_server.shared.errors import BenchError
from lsp_server.team.http_server.keys import own_keys_file
from tests.benchmarks.as_served.requests import (
    COMPLETION,
    EDIT,
    INSTRUCTION,
    NEXT_EDIT,
    SELECTED,
    ServedRequest,
    TimedText,
)
from tests.benchmarks.keystrokes.client import READY_S, PrivateDaemon, TypingClient
from tests.benchmarks.keystrokes.editor_process import ServerFailed, private_environment

TAKES_PART = 0.02
"""Share of the busiest thread's time from which on another took part."""


def empty_home(folder: Path, *, compiled: bool) -> dict[str, str]:
    """Return the environment of a user whose home is ``folder``, with nothing compiled unless
    ``compiled``."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = private_environment(folder) | {"HOME": str(folder)}
    if not compiled:
        environment.pop(CACHE_DIR, None)
    return environment


class Door(ABC):
    """A way to a running server."""

    kinds: tuple[str, ...]
    """Requests that it takes."""
    ready_s = 0.0
    """From the start of the process until the model was ready."""

    @abstractmethod
    def write(self, request: ServedRequest) -> TimedText | None:
        """Answer ``request``; None where the server refuses it."""

    @property
    @abstractmethod
    def engine(self) -> psutil.Process:
        """The engine process."""

    def threads_s(self) -> dict[int, float]:
        """Return the processor seconds of each thread of the engine."""
        return threads_s(self.engine)

    def write_together(self, line: Sequence[ServedRequest]) -> list[TimedText]:
        """Answer ``line`` of requests at a time; fewer answers where the server refuses."""
        return [answer for request in line if (answer := self.write(request)) is not None]


def threads_s(process: psutil.Process) -> dict[int, float]:
    """Return the processor seconds of each thread of ``process``."""
    return {each.id: each.user_time + each.system_time for each in process.threads()}


def took_part(seconds: dict[int, float]) -> int:
    """Return the number of threads that computed, by the processor ``seconds`` of each."""
    busiest = max(seconds.values())
    return sum(each > 0 and each >= TAKES_PART * busiest for each in seconds.values())


class EditorDoor(Door):
    """An editor with the real front, daemon, indexer and engine."""

    kinds = (COMPLETION, EDIT)

    def __init__(self, daemon: PrivateDaemon, client: TypingClient) -> None:
        self.daemon, self._client = daemon, client

    @property
    def front_pid(self) -> int:
        """Process id of the editor's own server."""
        return self._client.pid

    @property
    def engine(self) -> psutil.Process:
        return psutil.Process(self.daemon.status()["engines"][0]["pid"])

    def write(self, request: ServedRequest) -> TimedText | None:
        uri = (self.daemon.workspace / request.path).as_uri()
        document = self._client.open(uri, request.text)
        started = time.perf_counter()
        try:
            if request.kind == COMPLETION:
                answer = document.explain(len(request.text))
            else:
                lines = (SELECTED.start, SELECTED.stop)
                answer = document.edited(lines, INSTRUCTION, limit_s=READY_S)
        except ServerFailed:
            return None
        finally:
            document.close()
        seconds = time.perf_counter() - started
        cost = answer.get("statistics", answer)
        return TimedText(
            *(answer["text"], cost["tokens"], cost["forwards"], 0),
            *(seconds - cost["prefillSeconds"], 0.0),
        )

    def first_suggestion_s(self, request: ServedRequest) -> float:
        """Return the seconds until a suggestion is shown in a file that was just opened."""
        uri = (self.daemon.workspace / f"opened_{request.path}").as_uri()
        document = self._client.open(uri, request.text)
        started = time.perf_counter()
        document.ask(len(request.text), 1)[1].result(READY_S)
        seconds = time.perf_counter() - started
        document.close()
        return seconds


@contextmanager
def editor_door(model: str, folder: Path, *, compiled: bool) -> Iterator[EditorDoor]:
    """Start ``redraft serve`` as an editor does, and wait for its model."""
    environment = empty_home(folder, compiled=compiled)
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    started = time.perf_counter()
    daemon = PrivateDaemon(folder, workspace, str(Path(model).resolve()))
    daemon.environment = environment
    try:
        client = daemon.connect()
        door = EditorDoor(daemon, client)
        door.ready_s = time.perf_counter() - started
        yield door
        client.close()
    finally:
        daemon.stop()


class ServerDoor(Door):
    """Clients of a team's server."""

    kinds = (COMPLETION, EDIT, NEXT_EDIT)

    def __init__(self, address: str, key: str, process: psutil.Process) -> None:
        self.address, self.key, self._process = address, key, process
        self._connection = http.client.HTTPConnection(address)

    @property
    def engine(self) -> psutil.Process:
        family = self._process.children(recursive=True)
        return next(each for each in family if "lsp_server.engine.process" in each.cmdline())

    def write(self, request: ServedRequest) -> TimedText | None:
        return self._write(self._connection, request)

    def write_together(self, line: Sequence[ServedRequest]) -> list[TimedText]:
        """Answer ``line`` of requests at a time, each by a client of its own."""
        if len(line) == 1:
            return super().write_together(line)
        answers: dict[int, TimedText | None] = {}

        def work(number: int) -> None:
            connection = http.client.HTTPConnection(self.address)
            answers[number] = self._write(connection, line[number])
            connection.close()

        clients = [threading.Thread(target=work, args=(each,)) for each in range(len(line))]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        return [answer for _, answer in sorted(answers.items()) if answer is not None]

    def prefill(self, request: ServedRequest) -> None:
        """Compute the prompt of ``request``."""
        body = {"protocol": 1, "operation": "complete", "job": _fields(request)}
        status, answer = self._post(self._connection, "/redraft/v1/prefill", body)[:2]
        if status != 200:
            raise BenchError(f"the server answered {status} {answer[-300:]}")

    def _write(
        self, connection: http.client.HTTPConnection, request: ServedRequest
    ) -> TimedText | None:
        if request.kind == NEXT_EDIT:
            return self._write_next_edit(connection, request)
        route = "complete" if request.kind == COMPLETION else "edit"
        body = {"protocol": 1, "urgency": 0, "job": _fields(request)}
        started = time.perf_counter()
        status, answer, first_s = self._post(connection, f"/redraft/v1/{route}", body)
        seconds = time.perf_counter() - started
        if "\nevent: result\n" not in f"\n{answer}":
            if "event: error" in answer:
                return None
            raise BenchError(f"the server answered {status} {answer[-300:]}")
        cost = json.loads(answer.rpartition("\ndata: ")[2])
        return TimedText(
            *(cost["text"], cost["tokens"], cost["forwards"], cost["batched_rows"]),
            *(seconds - cost["prefill_seconds"], first_s),
        )

    def _write_next_edit(
        self, connection: http.client.HTTPConnection, request: ServedRequest
    ) -> TimedText:
        prediction = {"type": "content", "content": request.window}
        body = {"prompt": request.prompt, "prediction": prediction, "max_tokens": 0}
        self._post(connection, "/v1/completions", body)
        started = time.perf_counter()
        body["max_tokens"] = 2 * request.tokens
        status, answer, _ = self._post(connection, "/v1/completions", body)
        seconds = time.perf_counter() - started
        if status != 200:
            raise BenchError(f"the server answered {status} {answer[-300:]}")
        whole = json.loads(answer)
        tokens = whole["usage"]["completion_tokens"]
        return TimedText(whole["choices"][0]["text"], tokens, 0, 0, seconds, 0.0)

    def _post(
        self, connection: http.client.HTTPConnection, route: str, body: dict[str, Any]
    ) -> tuple[int, str, float]:
        """Return the status and the text of the answer, and the seconds until its first line."""
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        started = time.perf_counter()
        connection.request("POST", route, json.dumps(body), headers)
        answer = connection.getresponse()
        first = answer.readline()
        first_s = time.perf_counter() - started
        return answer.status, (first + answer.read()).decode(), first_s


def _fields(request: ServedRequest) -> dict[str, Any]:
    """Return the fields of the job of ``request`` as an editor's daemon sends them."""
    from lsp_server.shared.contract.codec import to_json

    fields: dict[str, Any] = to_json(request.job)
    return {name: value for name, value in fields.items() if value is not None and name != "owner"}


@contextmanager
def server_door(model: str, folder: Path, *, compiled: bool) -> Iterator[ServerDoor]:
    """Start ``redraft serve-http`` with a key, and wait for its model."""
    environment = empty_home(folder, compiled=compiled)
    keys = folder / "keys"
    keys.unlink(missing_ok=True)
    key = str(own_keys_file(keys, "measured"))
    program = Path(sys.executable).with_name("redraft")
    command = [str(program), "serve-http", "--model", model, "--keys", str(keys)]
    started = time.perf_counter()
    with (folder / "serve-http.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise BenchError("the server did not come up; its messages say why")
        address = urlsplit(json.loads(line)["url"]).netloc
        door = ServerDoor(address, key, psutil.Process(process.pid))
        door.ready_s = time.perf_counter() - started
        yield door
    finally:
        process.terminate()
        process.wait()
