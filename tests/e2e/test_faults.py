"""Processes that die, files that change, many clients, storms of requests."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .client import Driver, daemon_status, inline, wait_until, wait_until_ready

Connect = Callable[..., Driver]
TEXT = """from shapes import Rectangle


def double(rectangle):
    width = rectangle.width * 2
    height = rectangle.hei
"""
LINE, COLUMN = 5, len("    height = rectangle.hei")


def suggestion(driver: Driver, uri: str) -> str:
    """The first suggestion, asked for again while the engine starts."""
    for _ in range(1200):
        result = driver.request("textDocument/inlineCompletion", inline(uri, LINE, COLUMN))
        if result["items"]:
            return str(result["items"][0]["insertText"])
        time.sleep(0.1)
    raise AssertionError("no suggestion came")


def test_clients_share_one_engine_and_one_index(
    connect: Connect, environment: dict[str, str]
) -> None:
    connect().request("redraft/status", {})
    before = daemon_status(environment)
    for _ in range(3):
        connect().request("redraft/status", {})
    shown = daemon_status(environment)
    assert shown["clients"] == before["clients"] + 3 == 5
    # Other models of other tests may still be there.
    assert len(shown["engines"]) == len(before["engines"]) >= 1
    assert len(shown["workspaces"]) == len(before["workspaces"]) >= 1


def storm(driver: Driver, uri: str, pause_s: float, count: int) -> None:
    """A request for every key: the newest is answered, those before it, too, or with null where it
    came too soon, and nothing piles up."""
    driver.open(uri, TEXT)
    rng = random.Random(3)
    asked, queues, stopping = [], [], []
    for number in range(count):
        driver.insert(uri, 2 + number, 0, 0, rng.choice("abc \n"))
        column = rng.randrange(5)
        asked.append(
            driver.start("textDocument/inlineCompletion", inline(uri, rng.randrange(5), column))
        )
        if number % 10 == 0:
            told = driver.request("redraft/status", {})
            queues.append(told["queue"])
            stopping.append(told["stopping"])
        time.sleep(pause_s)
    answers = [driver.answer(number, 60) for number in asked]
    assert all("result" in answer for answer in answers)
    assert answers[-1]["result"] is not None
    # A fast machine answers every key of a slow typist.
    assert pause_s > 0.01 or any(answer["result"] is None for answer in answers)
    assert max(queues) <= 2, "one that runs, one that waits"
    # Where other processes hold the engine up, it says a little later that it has stopped.
    assert sorted(stopping)[len(stopping) // 2] <= STOPPING, stopping


STOPPING = int(os.environ.get("REDRAFT_STOPPING", "4"))
STORM_S = float(os.environ.get("REDRAFT_STORM_S", "60"))


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("pause_s", [0.01, 0.05, 0.15])
def test_long_storms_of_requests(connect: Connect, workspace: Path, pause_s: float) -> None:
    uri = (workspace / f"storm_{pause_s}.py").as_uri()
    storm(connect("neovim"), uri, pause_s, int(STORM_S / pause_s))


def test_a_storm_of_requests_is_answered_and_the_newest_with_text(
    connect: Connect, workspace: Path
) -> None:
    driver, uri = connect("neovim"), (workspace / "storm.py").as_uri()
    storm(driver, uri, 0.01, 150)
    driver.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": uri, "version": 999}, "contentChanges": [{"text": TEXT}]},
    )
    assert suggestion(driver, uri)


def test_clients_type_at_the_same_time_without_errors(connect: Connect, workspace: Path) -> None:
    drivers = [connect("vscode" if number % 2 else "neovim") for number in range(4)]

    def type_along(number: int) -> int:
        driver, uri = drivers[number], (workspace / f"many_{number}.py").as_uri()
        driver.open(uri, TEXT)
        answered = 0
        for key in range(25):
            driver.insert(uri, 2 + key, 1, 0, "x")
            asked = driver.start("textDocument/inlineCompletion", inline(uri, LINE, COLUMN))
            time.sleep(0.03)
            if key % 3 == 0:
                driver.notify("$/cancelRequest", {"id": asked})
            answer = driver.answer(asked, 60)
            assert "result" in answer or answer["error"]["code"] == -32800
            answered += "result" in answer
        return answered

    with ThreadPoolExecutor(len(drivers)) as pool:
        assert all(count > 10 for count in pool.map(type_along, range(len(drivers))))


def test_files_that_appear_and_vanish_are_followed(
    connect: Connect, workspace: Path, first: Driver
) -> None:
    driver = connect()

    def files() -> int:
        return int(driver.request("redraft/status", {})["index"]["files"])

    before = files()
    made = workspace / "made_later.py"
    made.write_text("made = True\n" * 5)
    wait_until(lambda: files() == before + 1)
    made.unlink()
    wait_until(lambda: files() == before)
    driver.request("workspace/executeCommand", {"command": "redraft.reindex"})
    wait_until_ready(first)
    assert files() == before


def test_a_killed_indexer_comes_back(environment: dict[str, str], first: Driver) -> None:
    pid = daemon_status(environment)["indexer_pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: daemon_status(environment)["indexer_pid"] not in (pid, None))
    wait_until_ready(first)


def test_a_killed_engine_costs_only_the_running_request(
    connect: Connect, environment: dict[str, str], workspace: Path
) -> None:
    driver, uri = connect(front=True), (workspace / "killed.py").as_uri()
    driver.open(uri, TEXT)
    assert suggestion(driver, uri)
    asked = driver.start("textDocument/inlineCompletion", inline(uri, 4, 4))
    os.kill(daemon_status(environment)["engines"][0]["pid"], signal.SIGKILL)
    answer = driver.answer(asked, 120)
    assert answer["result"] is None or "items" in answer["result"]
    driver.insert(uri, 2, 0, 0, "# typed meanwhile\n")
    driver.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": uri, "version": 3}, "contentChanges": [{"text": TEXT}]},
    )
    assert suggestion(driver, uri)
    assert driver.process.poll() is None


def test_a_model_that_is_not_there_is_told_with_a_remedy_and_disturbs_nobody(
    connect: Connect, workspace: Path, first: Driver
) -> None:
    from .client import profile

    driver = connect(initialize=False)
    settings = {"model": {"path": str(workspace / "no-such-model")}}
    driver.initialize({**profile("neovim"), "initializationOptions": {"settings": settings}},
                      workspace)  # fmt: skip
    told = driver.wait_for_state("error", timeout=60)
    assert "no-such-model" in told["message"]
    assert "\n" not in told["message"]
    assert told["remedy"]
    uri = (workspace / "without_model.py").as_uri()
    driver.open(uri, TEXT)
    result = driver.request("textDocument/inlineCompletion", inline(uri, LINE, COLUMN))
    assert result == {"items": []}
    assert first.request("redraft/status", {})["state"] != "error"


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_ten_clients_type_for_minutes_and_nothing_grows(
    connect: Connect, environment: dict[str, str], workspace: Path
) -> None:
    import psutil

    drivers = [connect() for _ in range(10)]
    seconds = float(os.environ.get("REDRAFT_SOAK_S", "600"))

    def type_along(number: int, until: float) -> None:
        driver, uri = drivers[number], (workspace / f"soak_{number}.py").as_uri()
        driver.open(uri, TEXT)
        rng, version = random.Random(number), 2
        while time.monotonic() < until:
            driver.insert(uri, version, rng.randrange(3), 0, rng.choice("ab\n"))
            asked = driver.start("textDocument/inlineCompletion", inline(uri, 2, 0))
            time.sleep(rng.uniform(0.05, 0.4))
            driver.notify("$/cancelRequest", {"id": asked})
            answer = driver.answer(asked, 60)
            assert "result" in answer or answer["error"]["code"] == -32800
            version += 1
            if version % 200 == 0:
                change = {"textDocument": {"uri": uri, "version": version}}
                driver.notify(
                    "textDocument/didChange", {**change, "contentChanges": [{"text": TEXT}]}
                )

    def memory() -> int:
        shown = daemon_status(environment)
        pids = [shown["pid"], shown["indexer_pid"], *(one["pid"] for one in shown["engines"])]
        return sum(psutil.Process(pid).memory_info().rss for pid in pids if pid)

    with ThreadPoolExecutor(10) as pool:
        list(
            pool.map(lambda number: type_along(number, time.monotonic() + seconds / 10), range(10))
        )
        before = memory()
        list(pool.map(lambda number: type_along(number, time.monotonic() + seconds), range(10)))
    assert memory() < before * 1.1 + (30 << 20)


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_the_engine_is_killed_again_and_again_and_typing_is_never_lost(
    connect: Connect, environment: dict[str, str], workspace: Path
) -> None:
    driver, uri = connect(front=True), (workspace / "again.py").as_uri()
    driver.open(uri, TEXT)
    for _ in range(20):
        assert suggestion(driver, uri)
        pids = [one["pid"] for one in daemon_status(environment)["engines"] if one["pid"]]
        if pids:
            os.kill(pids[0], signal.SIGKILL)
    assert driver.process.poll() is None
