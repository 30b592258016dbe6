"""A model that cannot be loaded: nobody waits, the user is told once, no process is started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from breaking import CONFIG, Broken, sound, with_config, with_file
from broken_models import KINDS
from own_folder import own_folder

from .client import REPOSITORY, Driver, inline, private_environment, profile, wait_until

TEXT = "def total(prices):\n    return sum(prices)\n"
AT_ONCE_S = 1.0
"""On a busy machine. Only the first request looks into the model's files."""
ANSWER_MS = 55_000
"""Beside other work the first look into a model takes longer than the 10 s after which a request is
answered empty: a test would change the files while they are looked at."""
KEYSTROKES = 20

SAMPLE = ("gguf_file", "file_address", "offline_id", "weights_file_of_a_folder", "empty_folder",
          "torn_weights")  # fmt: skip

Connect = Callable[..., Driver]


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """A home without any model of the hub. Its daemon never loads one."""
    with own_folder("e2e") as folder:
        made = private_environment(folder, HF_HUB_CACHE=str(folder / "hub"))
        yield made
        command = [sys.executable, "-m", "lsp_server", "stop"]
        subprocess.run(command, env=made, cwd=REPOSITORY, capture_output=True, check=False)


@pytest.fixture
def connect(environment: dict[str, str], tmp_path: Path) -> Iterator[Connect]:
    drivers: list[Driver] = []

    def make(model: str, *arguments: str, **own: Any) -> Driver:
        driver = Driver(environment, arguments)
        drivers.append(driver)
        settings = {
            "model": {"path": model},
            "index": {"enabled": False},
            "completion": {"timeoutMs": ANSWER_MS},
        }
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        driver.initialize(profile("vscode"), folder, settings=settings, redraft=own)
        driver.open(uri(tmp_path), TEXT)
        return driver

    yield make
    for driver in drivers:
        driver.kill()


def uri(tmp_path: Path) -> str:
    return (tmp_path / "work" / "total.py").as_uri()


def ask(driver: Driver, tmp_path: Path) -> tuple[list[Any], float]:
    """What is suggested, and how long that took."""
    started = time.monotonic()
    answer = driver.request("textDocument/inlineCompletion", inline(uri(tmp_path), 1, 22))
    return answer["items"], time.monotonic() - started


def press_keys(driver: Driver, tmp_path: Path) -> None:
    """Nothing is suggested, and nothing is waited for."""
    answers = [ask(driver, tmp_path) for _ in range(KEYSTROKES)]
    assert all(items == [] for items, _ in answers)
    # The median is not that of a moment in which others have the processor.
    assert sorted(seconds for _, seconds in answers)[KEYSTROKES // 2] < AT_ONCE_S


def messages(driver: Driver) -> list[str]:
    return [
        one["params"]["message"]
        for one in driver.notifications
        if one["method"] == "window/showMessage"
    ]


def ask_until_told(driver: Driver, tmp_path: Path, count: int) -> None:
    """Until the user has seen so many messages: an empty answer may come before its message."""

    def told() -> bool:
        assert ask(driver, tmp_path)[0] == []
        return len(messages(driver)) >= count

    wait_until(told)


def edit_error(driver: Driver, tmp_path: Path) -> str:
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 22}}
    params = {
        "textDocument": {"uri": uri(tmp_path), "version": 1},
        "range": span,
        "instruction": "add a docstring",
    }
    answer = driver.answer(driver.start("redraft/edit", params))
    message: str = answer["error"]["message"]
    return message


def engine_logs(environment: dict[str, str]) -> list[Path]:
    """An engine process writes a log as soon as it runs."""
    return list(Path(environment["XDG_STATE_HOME"]).rglob("engine.log"))


def made(broken: Broken, tmp_path: Path, environment: dict[str, str]) -> str:
    folder = tmp_path / "made"
    folder.mkdir(exist_ok=True)
    before = os.environ.get("HF_HUB_CACHE")
    os.environ["HF_HUB_CACHE"] = environment["HF_HUB_CACHE"]
    try:
        return broken.make(folder)
    finally:
        if before is None:
            del os.environ["HF_HUB_CACHE"]
        else:
            os.environ["HF_HUB_CACHE"] = before


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(one, id=one.name, marks=[] if one.name in SAMPLE else pytest.mark.long)
        for one in KINDS
    ],
)
def test_each_kind_is_told_once_and_nobody_waits(
    broken: Broken, connect: Connect, tmp_path: Path, environment: dict[str, str]
) -> None:
    driver = connect(made(broken, tmp_path, environment))
    assert ask(driver, tmp_path)[0] == []
    press_keys(driver, tmp_path)
    status = driver.request("redraft/status", {})
    assert status["state"] == "error"
    assert broken.cause in status["message"]
    assert broken.remedy in status["remedy"]
    error = edit_error(driver, tmp_path)
    assert error.startswith(status["message"][:200])
    (message,) = messages(driver)
    assert message == f"Redraft: {status['message']}; {status['remedy']}"
    assert engine_logs(environment) == []


def test_a_changed_file_is_tried_at_once(connect: Connect, tmp_path: Path) -> None:
    """Each repair shows the next fault, and the user is told of it."""
    place = tmp_path / "model"
    driver = connect(str(place))
    steps: list[tuple[Callable[[], object], str]] = [
        (place.mkdir, "is empty"),
        (lambda: sound(place), ""),
        (lambda: (place / "config.json").write_text("{"), "is not JSON"),
        (lambda: with_config(tmp_path, num_hidden_layers=3), "layer 2"),
        (lambda: with_file(tmp_path, "tokenizer.json", b"{}"), "no vocabulary"),
        (lambda: shutil.rmtree(place), "nothing of that name"),
    ]
    expected = ["nothing of that name"]
    ask_until_told(driver, tmp_path, len(expected))
    for change, cause in steps:
        change()
        if not cause:
            continue
        expected.append(cause)
        ask_until_told(driver, tmp_path, len(expected))
        status = driver.request("redraft/status", {})
        assert cause in status["message"]
    assert ask(driver, tmp_path)[0] == []
    told = messages(driver)
    assert len(told) == len(expected), told
    assert all(cause in message for cause, message in zip(expected, told, strict=True))


def test_a_changed_setting_is_tried_at_once(connect: Connect, tmp_path: Path) -> None:
    driver = connect(str(tmp_path / "first"))
    ask_until_told(driver, tmp_path, 1)
    for name in ("second", "first"):
        driver.configuration = {"model": {"path": str(tmp_path / name)}}
        driver.notify("workspace/didChangeConfiguration", {"settings": None})
        wanted = f"/{name}:"
        wait_until(lambda: wanted in driver.request("redraft/status", {})["message"])  # noqa: B023
        assert ask(driver, tmp_path)[0] == []
    told = messages(driver)
    assert [message.split(":")[1].rsplit("/", 1)[1] for message in told] == [
        "first",
        "second",
        "first",
    ]


def test_another_window_is_told_too(connect: Connect, tmp_path: Path) -> None:
    drivers = [connect(str(tmp_path / "nothing")) for _ in range(3)]
    for driver in drivers:
        ask_until_told(driver, tmp_path, 1)
    for driver in drivers:
        driver.request("redraft/status", {})
        assert len(messages(driver)) == 1


def offers(driver: Driver) -> list[dict[str, Any]]:
    """Messages with buttons so far."""
    return [one for one in driver.asked if one["method"] == "window/showMessageRequest"]


def test_clients_that_can_are_offered_to_choose_a_model(connect: Connect, tmp_path: Path) -> None:
    driver = connect(str(tmp_path / "nothing"), chooseModel=True)
    assert ask(driver, tmp_path)[0] == []
    wait_until(lambda: len(offers(driver)) == 1)
    driver.chosen = {"title": "Choose Model"}
    driver.configuration = {"model": {"path": str(tmp_path / "nothing either")}}
    driver.notify("workspace/didChangeConfiguration", {"settings": None})
    driver.wait_for(lambda message: message["method"] == "redraft/chooseModel")
    assert len(offers(driver)) == 2
    assert offers(driver)[1]["params"]["actions"] == [{"title": "Choose Model"}]
    assert messages(driver) == []


@pytest.mark.long
def test_a_fault_that_only_loading_finds_starts_one_process(
    connect: Connect, tmp_path: Path, environment: dict[str, str]
) -> None:
    model = with_config(tmp_path, **{**CONFIG, "intermediate_size": 4})
    driver = connect(model)
    driver.wait_for_state("error", timeout=240)
    press_keys(driver, tmp_path)
    status = driver.request("redraft/status", {})
    assert status["state"] == "error"
    assert status["remedy"]
    assert edit_error(driver, tmp_path).startswith(status["message"][:100])
    assert len(messages(driver)) == 1
    (log,) = engine_logs(environment)
    assert log.read_text().count("the model cannot be loaded") == 1
    log.unlink()
