"""An editor whose model is at a server: a real ``redraft serve`` and a real ``redraft serve-http``.

Both load the small model, so that what the server writes can be compared with what this machine
writes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from .client import REPOSITORY, Driver, inline, private_environment, profile, status, wait_until
from .conftest import SHAPES

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("starlette") is None, reason="needs the extra server"
)

KEY = "plum-key-51c0ffee"
READY_S = 240
ALONE = {
    "index": {"enabled": False},
    "completion": {"prefetch": False, "alternatives": 1, "timeoutMs": 120_000},
}
"""Nothing but the document itself is in prompts: a server has no index of this machine."""
LONG = "".join(
    f"def number_{n}(first, second):\n    return first + {n} * second\n\n\n" for n in range(90)
)


class TeamServer:
    """A ``redraft serve-http`` that can be killed and started again at its place."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self._environment = environment
        self._keys = folder / "keys"
        self._keys.write_text(f"developer {KEY}\n")
        self._keys.chmod(0o600)
        self.port = 0
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "lsp_server", "serve-http", "--keys", str(self._keys)]
        self._process = subprocess.Popen(
            [*command, "--port", str(self.port)],
            env=self._environment,
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = json.loads(self._process.stdout.readline())["url"]
        self.port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        """All at once, as when a machine loses its power."""
        if self._process is None or self._process.poll() is not None:
            return
        children = psutil.Process(self._process.pid).children(recursive=True)
        for process in [*children, self._process]:
            process.send_signal(signal.SIGKILL)
        self._process.wait(60)

    def computed_s(self) -> float:
        """Processor seconds of the server's engine so far."""
        assert self._process is not None
        times = [one.cpu_times() for one in psutil.Process(self._process.pid).children(True)]
        return sum(one.user + one.system for one in times)


class Place:
    """A private home, its editors, and a server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = private_environment(folder, PYTHONPATH=str(REPOSITORY))
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        (self.workspace / "shapes.py").write_text(SHAPES)
        self.server = TeamServer(self.environment, folder)
        self._drivers: list[Driver] = []

    def editor(self, key: str = KEY, **server: Any) -> Driver:
        """An editor with a server, or without one."""
        environment = self.environment
        settings: dict[str, Any] = dict(ALONE)
        if server:
            environment = {**environment, "REDRAFT_SERVER_KEY": key}
            settings["server"] = server
        driver = Driver(environment)
        self._drivers.append(driver)
        options = {"settings": {**settings, "log": {"level": "debug", "sourceText": True}}}
        driver.initialize({**profile("neovim"), "initializationOptions": options}, self.workspace)
        return driver

    def close(self) -> None:
        for driver in self._drivers:
            driver.kill()
        command = [sys.executable, "-m", "lsp_server", "stop"]
        subprocess.run(command, env=self.environment, cwd=REPOSITORY, timeout=60, check=False)
        self.server.kill()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("remote"))
    made.server.start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def remote(place: Place) -> Driver:
    driver = place.editor(url=place.server.url, fallback="model")
    driver.wait_for_state("ready", timeout=READY_S)
    return driver


@pytest.fixture(scope="module")
def local(place: Place) -> Driver:
    driver = place.editor()
    driver.wait_for_state("ready", timeout=READY_S)
    return driver


def completions(driver: Driver, uri: str, text: str, places: list[tuple[int, int]]) -> list[str]:
    """What is suggested at each place, the rest of the line taken away."""
    shown = []
    lines = text.split("\n")
    for version, (line, column) in enumerate(places, 1):
        cut = [*lines[:line], lines[line][:column], *lines[line + 1 :]]
        driver.open(uri, "\n".join(cut), version=version)
        # Asked for by hand, the whole text is waited for.
        asked = driver.start("textDocument/inlineCompletion", inline(uri, line, column, kind=1))
        answer = driver.answer(asked, 120)["result"]
        shown.append("".join(item["insertText"] for item in answer["items"]))
        driver.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    return shown


def edited(driver: Driver, uri: str, text: str, first: int, last: int, instruction: str) -> str:
    """What an edit makes of lines, or why it is refused."""
    driver.open(uri, text)
    answer = driver.answer(driver.start("redraft/edit", edit_params(uri, first, last, instruction)))
    driver.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    return answer["result"]["text"] if "result" in answer else answer["error"]["message"]


def edit_params(uri: str, first: int, last: int, instruction: str) -> dict[str, Any]:
    span = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}
    return {"textDocument": {"uri": uri}, "range": span, "instruction": instruction}


def places_in(text: str, count: int) -> list[tuple[int, int]]:
    """Places within the longer lines of a text, the same each time."""
    lines = text.split("\n")
    long = [number for number, line in enumerate(lines) if len(line.strip()) > 8]
    chosen = [long[n * len(long) // count] for n in range(min(count, len(long)))]
    return [(n, len(lines[n]) - max(3, len(lines[n].strip()) // 2)) for n in chosen]


EDITS = [(8, 11, "remove the docstring"), (13, 18, "hint factor as int"), (3, 6, "add a docstring")]


def test_the_server_writes_what_this_machine_writes(
    place: Place, remote: Driver, local: Driver
) -> None:
    uri = (place.workspace / "shapes.py").as_uri()
    places = places_in(SHAPES, 6)
    here = completions(local, uri, SHAPES, places)
    there = completions(remote, uri, SHAPES, places)
    assert there == here
    assert any(here)
    for first, last, instruction in EDITS:
        texts = {edited(one, uri, SHAPES, first, last, instruction) for one in (local, remote)}
        assert len(texts) == 1, texts


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_two_hundred_completions_and_a_hundred_edits_are_the_same(
    place: Place, remote: Driver, local: Driver
) -> None:
    uri = (place.workspace / "shapes.py").as_uri()
    sources = sorted((REPOSITORY / "tests" / "data" / "corpus").rglob("*.py"))
    sources += sorted((REPOSITORY / "lsp_server" / "editor" / "completion").glob("*.py"))
    compared = 0
    for source in sources:
        text = source.read_text("utf-8")
        places = places_in(text, min(10, 200 - compared))
        assert completions(remote, uri, text, places) == completions(local, uri, text, places)
        compared += len(places)
        if compared >= 200:
            break
    assert compared == 200
    edits = 0
    for source in sources:
        text = source.read_text("utf-8")
        starts = [
            n for n, line in enumerate(text.split("\n")) if line.startswith(("def ", "class "))
        ]
        for first in starts[: min(8, 100 - edits)]:
            instruction = ("remove the docstring", "make it async", "add a docstring")[edits % 3]
            last = min(first + 12, text.count("\n"))
            texts = [edited(one, uri, text, first, last, instruction) for one in (local, remote)]
            assert texts[0] == texts[1], (source, first, instruction)
            edits += 1
    assert edits == 100


def test_the_status_names_the_server_and_never_the_key(place: Place, remote: Driver) -> None:
    told = remote.request("redraft/status", {})
    assert told["server"]["url"] == place.server.url
    assert (told["server"]["answers"], told["server"]["drafted"]) == ("server", True)
    shown = status(place.environment)
    assert place.server.url in [one["server"]["url"] for one in shown["engines"] if one["server"]]
    assert KEY not in json.dumps([told, shown])


def test_a_wrong_key_is_told(place: Place, remote: Driver) -> None:
    driver = place.editor(key="wrong-plum", url=place.server.url, fallback="none")
    told = driver.wait_for_state("error", timeout=60)
    assert "does not take the key" in told["message"]
    assert "Set Server Key" in told["remedy"]
    assert "wrong-plum" not in json.dumps(driver.notifications)


def test_a_cancel_ends_the_work_there(place: Place, remote: Driver) -> None:
    uri = (place.workspace / "long.py").as_uri()
    # What its forwards take is measured while nothing is asked.
    wait_until(lambda: _rests(place.server), 120)
    before = place.server.computed_s()
    remote.open(uri, LONG)
    whole = {**edit_params(uri, 0, 80, "add a docstring"), "plain": True}
    remote.answer(remote.start("redraft/edit", whole), 240)
    remote.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    whole_s = place.server.computed_s() - before
    remote.open(uri, LONG)
    params = {**whole, "streamToken": "cancelled"}
    asked = remote.start("redraft/edit", params)
    remote.wait_for(lambda one: _is_progress(one, "cancelled"))
    before = place.server.computed_s()
    remote.notify("$/cancelRequest", {"id": asked})
    assert remote.answer(asked)["error"]["code"] == -32800
    wait_until(lambda: _rests(place.server))
    assert place.server.computed_s() - before < whole_s / 2


def _is_progress(message: dict[str, Any], token: str) -> bool:
    return message["method"] == "redraft/editProgress" and message["params"]["token"] == token


def _rests(server: TeamServer) -> bool:
    """Whether the engine computes nothing for half a second."""
    before = server.computed_s()
    time.sleep(0.5)
    return server.computed_s() - before < 0.05


def test_a_server_that_dies_in_the_middle_is_replaced(
    place: Place, remote: Driver, local: Driver
) -> None:
    uri = (place.workspace / "killed.py").as_uri()
    wanted = edited(local, uri, LONG, 0, 80, "add a docstring")
    remote.open(uri, LONG)
    params = {**edit_params(uri, 0, 80, "add a docstring"), "streamToken": "killed"}
    asked = remote.start("redraft/edit", params)
    remote.wait_for(lambda one: _is_progress(one, "killed"))
    place.server.kill()
    answer = remote.answer(asked, 120)
    got = answer["result"]["text"] if "result" in answer else answer["error"]["message"]
    assert got == wanted
    assert completions(remote, uri, SHAPES, places_in(SHAPES, 1))
    told = remote.request("redraft/status", {})
    assert told["server"]["answers"] == "local"
    assert "the model on this machine answers" in told["message"] + told["reason"]
    assert told["server"]["nextTryS"] <= 60


@pytest.mark.long
def test_a_server_that_comes_back_is_taken_again(place: Place, remote: Driver) -> None:
    place.server.kill()
    uri = (place.workspace / "back.py").as_uri()
    completions(remote, uri, SHAPES, places_in(SHAPES, 2))
    assert _answers(remote) == "local"
    place.server.start()
    wait_until(lambda: _answers(remote) == "server", 120)


def _answers(driver: Driver) -> str:
    answers: str = driver.request("redraft/status", {})["server"]["answers"]
    return answers


def test_the_key_is_in_no_log_and_no_file(place: Place, remote: Driver) -> None:
    looked = 0
    for path in place.folder.rglob("*"):
        if path.is_file() and path.name != "keys":
            looked += 1
            assert KEY.encode() not in path.read_bytes(), path
    assert looked > 3
    logs = list(place.folder.rglob("daemon.log"))
    assert logs, "the daemon writes a log"
    assert all(os.stat(log).st_mode & 0o077 == 0 for log in logs)
