"""Completions through the real processes, as VS Code and as Neovim speak."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .client import Driver, daemon_status, inline, wait_until

TEXT = """from shapes import Rectangle, scale


def double(rectangle):
    width = rectangle.width * 2
    height = rectangle.hei
"""
LINE, COLUMN = 5, len("    height = rectangle.hei")
Connect = Callable[..., Driver]


def uri_of(workspace: Path, name: str) -> str:
    return (workspace / name).as_uri()


def ask(driver: Driver, uri: str, column: int = COLUMN, kind: int = 2) -> list[dict]:
    result = driver.request("textDocument/inlineCompletion", inline(uri, LINE, column, kind))
    assert set(result) == {"items"}
    return result["items"]


@contextmanager
def engines_stopped(environment: dict[str, str]) -> Iterator[None]:
    """What is answered meanwhile is answered without a model."""
    pids = [engine["pid"] for engine in daemon_status(environment)["engines"] if engine["pid"]]
    assert pids
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("name", ["vscode", "neovim"])
def test_a_suggestion_comes_and_typing_into_it_costs_no_model_time(
    connect: Connect, environment: dict[str, str], workspace: Path, name: str
) -> None:
    driver, uri = connect(name), uri_of(workspace, f"typing_{name}.py")
    driver.open(uri, TEXT)
    items: list[dict] = []
    while not items:  # a busy machine answers the first ones too late
        items = ask(driver, uri)
    assert len(items) == 1
    text = items[0]["insertText"]
    place = {"line": LINE, "character": COLUMN}
    assert items[0]["range"] == {"start": place, "end": place}
    assert text
    with engines_stopped(environment):
        for typed in range(1, len(text)):
            driver.insert(uri, 1 + typed, LINE, COLUMN + typed - 1, text[typed - 1])
            rest = ask(driver, uri, COLUMN + typed)
            assert rest[0]["insertText"] == text[typed:]
    status = driver.request("redraft/status", {})
    assert status["reason"] == ""


def test_positions_are_in_the_clients_units(connect: Connect, workspace: Path) -> None:
    for name, units in (("vscode", 2), ("neovim", 4)):
        driver, uri = connect(name), uri_of(workspace, f"units_{name}.py")
        line = "𝄞 = 1; height = rectangle.hei"
        driver.open(uri, TEXT.replace("height = rectangle.hei", line))
        items = ask(driver, uri, len("    " + line) - 1 + units)
        assert items[0]["insertText"]


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_unknown_trigger_kinds_are_answered(connect: Connect, workspace: Path, kind: int) -> None:
    driver, uri = connect(), uri_of(workspace, "kinds.py")
    driver.open(uri, TEXT)
    assert ask(driver, uri, kind=kind)


def test_what_the_menu_selected_begins_every_item(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(), uri_of(workspace, "selected.py")
    driver.open(uri, TEXT)
    start = {"line": LINE, "character": COLUMN - 3}
    span = {"start": start, "end": {"line": LINE, "character": COLUMN}}
    selected = {"range": span, "text": "height"}
    params = inline(uri, LINE, COLUMN, selectedCompletionInfo=selected)
    items = driver.request("textDocument/inlineCompletion", params)["items"]
    assert all(item["range"] == span and item["insertText"].startswith("height") for item in items)


def test_the_newest_request_wins_and_the_older_is_null(connect: Connect, workspace: Path) -> None:
    driver, uri = connect("neovim"), uri_of(workspace, "newest.py")
    driver.open(uri, TEXT + "\n\ndef triple(rectangle):\n    ")
    old = driver.start("textDocument/inlineCompletion", inline(uri, 9, 4))
    new = driver.start("textDocument/inlineCompletion", inline(uri, LINE, COLUMN))
    assert driver.answer(new)["result"]["items"]
    assert driver.answer(old)["result"] is None


def test_a_cancelled_request_is_answered_so_and_leaves_the_engine_idle(
    connect: Connect, workspace: Path
) -> None:
    driver, uri = connect(), uri_of(workspace, "cancel.py")
    driver.open(uri, TEXT + "\n\ndef stretch(rectangle, by):\n    ")
    number = driver.start("textDocument/inlineCompletion", inline(uri, 9, 4))
    driver.notify("$/cancelRequest", {"id": number})
    assert driver.answer(number)["error"]["code"] == -32800
    deadline = time.monotonic() + 60
    while (told := driver.request("redraft/status", {}))["queue"] or told["stopping"]:
        assert time.monotonic() < deadline, "the engine goes on"
    assert ask(driver, uri)


def test_nothing_to_show_is_an_empty_list_with_a_reason(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(), uri_of(workspace, ".env")
    driver.open(uri, "PASSWORD=", "dotenv")
    result = driver.request("textDocument/inlineCompletion", inline(uri, 0, 9))
    assert result == {"items": []}
    status = driver.request("redraft/status", {"textDocument": {"uri": uri}})
    assert status["state"] == "inactive"
    assert "secret" in status["reason"]


def test_a_document_that_is_not_open_is_an_error_not_a_file(
    connect: Connect, workspace: Path
) -> None:
    driver = connect()
    uri = uri_of(workspace, "shapes.py")
    answer = driver.answer(driver.start("textDocument/inlineCompletion", inline(uri, 0, 0)))
    assert answer["error"]["code"] == -32803
    assert "not open" in answer["error"]["message"]


def test_pause_and_resume(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(), uri_of(workspace, "pause.py")
    driver.open(uri, TEXT)
    driver.request("workspace/executeCommand", {"command": "redraft.pause"})
    assert ask(driver, uri) == []
    assert driver.request("redraft/status", {})["state"] == "paused"
    driver.request("workspace/executeCommand", {"command": "redraft.resume"})
    assert ask(driver, uri)


def test_nothing_is_suggested_for_so_many_minutes(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(), uri_of(workspace, "snooze.py")
    driver.open(uri, TEXT)

    def snooze(minutes: object) -> dict[str, Any]:
        told = {"command": "redraft.snooze", "arguments": [{"uri": uri, "minutes": minutes}]}
        return driver.answer(driver.start("workspace/executeCommand", told))

    for wrong in (None, 0, -1, "10", 100_000):
        assert "needs the minutes" in snooze(wrong)["error"]["message"]
    snooze(60)
    assert ask(driver, uri) == []
    said = driver.request("redraft/status", {})
    assert said["state"] == "paused"
    assert re.fullmatch(r"paused until \d\d:\d\d", said["message"])
    snooze(0.001)
    wait_until(lambda: driver.request("redraft/status", {})["state"] != "paused")
    assert ask(driver, uri)


def test_nothing_comes_before_a_key_asks_for_it(connect: Connect, workspace: Path) -> None:
    settings = {"settings": {"screen": {"onlyAsked": True}}}
    driver, uri = connect(initializationOptions=settings), uri_of(workspace, "asked.py")
    driver.open(uri, TEXT)
    assert ask(driver, uri) == []
    assert ask(driver, uri, kind=1)


def test_settings_are_pulled_reported_and_live(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(initialize=False), uri_of(workspace, "settings.py")
    driver.configuration = {"completion": {"maxTokens": "many"}, "nonsense": 1}
    from .client import profile

    driver.initialize(profile("vscode"), workspace)
    shown = driver.wait_for(lambda message: message["method"] == "window/showMessage")
    assert "maxTokens" in shown["params"]["message"]
    assert "nonsense" in shown["params"]["message"]
    driver.open(uri, TEXT)
    assert ask(driver, uri)
    driver.configuration = {"languages": {"python": False}}
    driver.notify("workspace/didChangeConfiguration", {"settings": None})
    driver.request("redraft/status", {})
    assert ask(driver, uri) == []
    assert "redraft.languages" in driver.request("redraft/status", {})["reason"]


@pytest.mark.parametrize(
    ("beside", "told"), [("completion", []), ("edit", ["redraft.edit in initializationOptions"])]
)
def test_settings_in_another_place_are_told_unless_the_client_answers_them_too(
    connect: Connect, workspace: Path, beside: str, told: list[str]
) -> None:
    from .client import profile

    driver = connect(initialize=False)
    driver.configuration = {"completion": {"maxTokens": 33}, "nonsense": 1}
    options = {"redraft": {beside: {}}}
    driver.initialize({**profile("vscode"), "initializationOptions": options}, workspace)
    driver.wait_for(lambda message: "nonsense" in str(message))
    driver.request("redraft/status", {})
    shown = [
        message["params"]["message"]
        for message in driver.notifications
        if message["method"] == "window/showMessage"
    ]
    misplaced = [message for message in shown if "initializationOptions" in message]
    assert len(misplaced) == len(told)
    assert all(part in message for part, message in zip(told, misplaced, strict=True))


def test_explain_tells_where_tokens_came_from(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(), uri_of(workspace, "explain.py")
    driver.open(uri, TEXT)
    params = {"textDocument": {"uri": uri}, "position": {"line": LINE, "character": COLUMN}}
    drafted = driver.request("redraft/explain", params)
    plain = driver.request("redraft/explain", {**params, "plain": True})
    assert "".join(span["text"] for span in drafted["spans"]) == drafted["text"]
    assert drafted["forwards"] <= plain["forwards"]
    assert set(plain["sources"]) == {"model"}


def test_a_client_without_inline_completion_is_served_in_the_menu(
    connect: Connect, workspace: Path
) -> None:
    from .client import profile

    plain = profile("neovim")
    del plain["capabilities"]["textDocument"]["inlineCompletion"]
    driver, uri = connect(initialize=False), uri_of(workspace, "menu.py")
    capabilities = driver.initialize(plain, workspace)["capabilities"]
    assert "completionProvider" in capabilities
    driver.open(uri, TEXT)
    place = {"line": LINE, "character": COLUMN}
    params = {"textDocument": {"uri": uri}, "position": place}
    item = driver.request("textDocument/completion", params)["items"][0]
    assert len(item["textEdit"]["newText"]) > 3
    assert item["textEdit"]["newText"].startswith("hei")
    assert item["textEdit"]["range"]["start"]["character"] == COLUMN - 3
    assert item["filterText"].startswith("hei")
