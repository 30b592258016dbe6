"""What an editor may have open, and what a session leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .client import (
    PYTHON,
    Driver,
    command,
    daemon_status,
    inline,
    profile,
    wait_until,
    wait_until_ready,
)
from .test_faults import COLUMN, LINE, TEXT, suggestion

Connect = Callable[..., Driver]


def items(driver: Driver, uri: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = driver.request(
        "textDocument/inlineCompletion", inline(uri, LINE, COLUMN)
    )["items"]
    return found


def configured(driver: Driver, workspace: Path, **settings: Any) -> Driver:
    options = {"initializationOptions": {"settings": settings}}
    driver.initialize({**profile("neovim"), **options}, workspace)
    return driver


def test_untitled_documents_get_suggestions(connect: Connect) -> None:
    driver = connect()
    for uri in ("untitled:Untitled-1", "untitled:/folder/new%20file.py"):
        driver.open(uri, TEXT)
        assert suggestion(driver, uri)
        driver.insert(uri, 2, LINE, COLUMN, "ght")
        driver.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


def test_each_document_belongs_to_its_folder_and_folders_come_and_go(
    connect: Connect, workspace: Path, tmp_path: Path
) -> None:
    second = tmp_path / "second"
    second.mkdir()
    (second / "tools.py").write_text("def tool():\n    return 1\n" * 30)
    driver = connect()

    def folders() -> list[str]:
        return sorted(driver.request("redraft/status", {})["workspace"].split(", "))

    def change(**event: list[dict[str, str]]) -> None:
        told = {"added": [], "removed": [], **event}
        driver.notify("workspace/didChangeWorkspaceFolders", {"event": told})

    change(added=[{"uri": second.as_uri(), "name": "second"}])
    wait_until(lambda: folders() == sorted([str(workspace), str(second)]))
    wait_until_ready(driver)
    for folder in (workspace, second):
        uri = (folder / "typed.py").as_uri()
        driver.open(uri, TEXT)
        assert suggestion(driver, uri)
    change(removed=[{"uri": second.as_uri(), "name": "second"}])
    wait_until(lambda: folders() == [str(workspace)])
    assert suggestion(driver, (workspace / "typed.py").as_uri())


def test_folders_and_languages_are_switched_off_each_for_itself(
    connect: Connect, workspace: Path
) -> None:
    off = workspace / "generated"
    driver = configured(
        connect(initialize=False), workspace,
        folders={str(off): False}, languages={"lua": False},
    )  # fmt: skip
    driver.wait_for_state("ready", "indexing", timeout=240)
    for path, language, reason in (
        (off / "a.py", "python", "redraft.folders"),
        (workspace / "a.lua", "lua", "redraft.languages"),
    ):
        driver.open(path.as_uri(), TEXT, language)
        assert items(driver, path.as_uri()) == []
        told = driver.request("redraft/status", {"textDocument": {"uri": path.as_uri()}})
        assert (told["state"], reason in told["reason"]) == ("inactive", True)
    on = (workspace / "on.py").as_uri()
    driver.open(on, TEXT)
    assert suggestion(driver, on)


def test_an_accepted_suggestion_is_counted_here(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(), (workspace / "accepted.py").as_uri()
    driver.open(uri, TEXT)
    assert suggestion(driver, uri)
    (item, *_) = items(driver, uri)
    before = driver.request("redraft/status", {})["accepted"]
    command = item["command"]
    driver.request("workspace/executeCommand",
                   {"command": command["command"], "arguments": command["arguments"]})  # fmt: skip
    told = driver.request("redraft/status", {})
    assert told["accepted"] == before + 1
    assert told["acceptance"]["python"]["shown"] >= 1
    assert 0 < told["acceptance"]["python"]["rate"] <= 1


def test_memory_is_given_back_when_the_model_is_not_used_and_it_comes_again(
    connect: Connect, environment: dict[str, str], workspace: Path
) -> None:
    driver = configured(
        connect(initialize=False, front=True),
        workspace,
        model={"dtype": "fp32", "unloadAfterMinutes": 0.05},
    )
    driver.wait_for_state("ready", "indexing", timeout=240)

    def pid() -> int | None:
        engines = [one for one in daemon_status(environment)["engines"] if one["dtype"] == "fp32"]
        found: int | None = engines[0]["pid"] if engines else None
        return found

    wait_until(lambda: pid() is None, 120)
    uri = (workspace / "unloaded.py").as_uri()
    driver.open(uri, TEXT)
    assert suggestion(driver, uri)
    assert driver.process.poll() is None


def test_a_killed_daemon_costs_one_answer_and_nothing_typed(
    connect: Connect, environment: dict[str, str], workspace: Path
) -> None:
    driver, uri = connect(front=True), (workspace / "survives.py").as_uri()
    driver.open(uri, TEXT.replace("hei", ""))
    for number, character in enumerate("hei"):
        driver.insert(uri, 2 + number, LINE, COLUMN - 3 + number, character)
    assert suggestion(driver, uri)
    asked = driver.start("textDocument/inlineCompletion", inline(uri, 4, 4))
    os.kill(daemon_status(environment)["pid"], signal.SIGKILL)
    answer = driver.answer(asked, 60)
    assert "result" in answer or answer["error"]["code"] == -32801
    wait_until(lambda: "pid" in daemon_status(environment), 90)
    # Others may find the daemon before the front has told it the session.
    wait_until(lambda: not is_to_ask_again(driver, uri))
    assert suggestion(driver, uri)
    assert driver.process.poll() is None


def is_to_ask_again(driver: Driver, uri: str) -> bool:
    asked = driver.start("textDocument/inlineCompletion", inline(uri, LINE, COLUMN))
    answer = driver.answer(asked, 60)
    assert "result" in answer or answer["error"]["code"] == -32801, answer
    return "error" in answer


def test_nobody_has_opened_a_socket_but_the_daemons(
    connect: Connect, environment: dict[str, str], workspace: Path, tmp_path: Path
) -> None:
    driver, uri = connect(), (workspace / "quiet.py").as_uri()
    driver.open(uri, TEXT)
    assert suggestion(driver, uri)
    first_line = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    edit = {"textDocument": {"uri": uri}, "range": first_line, "instruction": "add a comment"}
    driver.answer(driver.start("redraft/edit", edit))  # made or refused: the model was asked
    place = {"line": LINE, "character": COLUMN}
    driver.request("redraft/nextEdit", {"textDocument": {"uri": uri}, "position": place})
    (workspace / "saved.py").write_text(TEXT)
    indexed = command(environment, "index", str(workspace))
    assert indexed.returncode == 0, indexed.stderr
    before = notes(environment)
    # The recorder works: a process that does speak to the network is noted, ours as another's.
    speak = "import socket; socket.socket(socket.AF_INET).connect_ex(('127.0.0.1', 9))"
    start = (
        "import subprocess; from accel.native.python_process import python_command; "
        "subprocess.run(python_command('speaks'), check=True)"
    )
    (tmp_path / "speaks.py").write_text(speak)
    (tmp_path / "speaks-1.dist-info").mkdir()
    for number, program in enumerate([speak, start], 1):
        made = {**environment, "PYTHONPATH": str(tmp_path)}
        subprocess.run([environment[PYTHON], "-c", program], env=made, check=True, timeout=60)
        assert len(notes(environment)) == len(before) + 2 * number
    assert before == []
    Path(environment["REDRAFT_TEST_NOTES"]).unlink()


def notes(environment: dict[str, str]) -> list[str]:
    path = Path(environment["REDRAFT_TEST_NOTES"])
    return path.read_text().splitlines() if path.exists() else []


def cancel_at_random(driver: Driver, workspace: Path, times: int) -> None:
    """Cancel requests at any point; each is answered, and nothing is left that stops."""
    for number in range(times):
        uri = (workspace / f"cancelled_{number % 7}.py").as_uri()
        driver.open(uri, TEXT + f"\n\ndef another_{number}(first):\n    ")
        asked = driver.start("textDocument/inlineCompletion", inline(uri, 9, 4))
        time.sleep(0.002 * (number * 37 % 50))
        driver.notify("$/cancelRequest", {"id": asked})
        answer = driver.answer(asked, 60)
        assert "result" in answer or answer["error"]["code"] == -32800
    wait_until(lambda: driver.request("redraft/status", {})["stopping"] == 0)


def test_cancelled_requests_end(connect: Connect, workspace: Path) -> None:
    cancel_at_random(connect(), workspace, 25)


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_a_thousand_cancelled_requests_end(
    connect: Connect, environment: dict[str, str], workspace: Path
) -> None:
    import psutil

    driver = connect()
    cancel_at_random(driver, workspace, 50)
    pid = daemon_status(environment)["engines"][0]["pid"]
    before = psutil.Process(pid).memory_info().rss
    cancel_at_random(driver, workspace, 1000)
    grown = psutil.Process(pid).memory_info().rss - before
    assert grown < 64 << 20, "keys and values of cancelled requests are freed"
