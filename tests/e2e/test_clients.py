"""What third-party clients send is answered by a real server as they need it; ``clients.json`` has
their ``initialize``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .client import DATA, Driver, inline, profile
from .test_completion import COLUMN, LINE, TEXT, uri_of

Connect = Callable[..., Driver]
CLIENTS: dict[str, Any] = json.loads((DATA / "clients.json").read_text())
CLIENTS["neovim"] = profile("neovim")
READY_S = 240


def joined(connect: Connect, workspace: Path, name: str) -> Driver:
    driver: Driver = connect(initialize=False)
    options = CLIENTS[name].get("initializationOptions") or {}
    # No test hangs on how long a model takes.
    settings = {"completion": {"timeoutMs": 60_000}}
    driver.initialize(CLIENTS[name], workspace, **{**options, "settings": settings})
    driver.wait_for_state("ready", "indexing", timeout=READY_S)
    return driver


def only(driver: Driver, items: list[Any]) -> Any:
    """Return the one item; without it the test says why there is none."""
    assert len(items) == 1, driver.request("redraft/status", {})["reason"]
    return items[0]


def place(uri: str) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": LINE, "character": COLUMN}}


@pytest.mark.parametrize("name", ["neovim", "lsp4ij"])
def test_a_menu_ends_where_suggestions_are_drawn(
    connect: Connect, workspace: Path, name: str
) -> None:
    driver = joined(connect, workspace, name)
    uri = uri_of(workspace, f"menu_{name}.py")
    driver.open(uri, TEXT)
    item = only(driver, driver.request("textDocument/completion", place(uri))["items"])
    assert item["textEdit"]["newText"].startswith("hei")
    assert driver.request("textDocument/inlineCompletion", inline(uri, LINE, COLUMN))["items"]
    assert driver.request("textDocument/completion", place(uri))["items"] == []


@pytest.mark.parametrize("runs_command", [False, True])
def test_what_a_change_puts_in_is_counted_once(
    connect: Connect, workspace: Path, runs_command: bool
) -> None:
    """LSP4IJ runs no command of an item."""
    driver = joined(connect, workspace, "lsp4ij")
    uri = uri_of(workspace, f"inserted_{runs_command}.py")
    driver.open(uri, TEXT)
    asked = inline(uri, LINE, COLUMN)
    item = only(driver, driver.request("textDocument/inlineCompletion", asked)["items"])
    before = driver.request("redraft/status", {})["accepted"]
    driver.insert(uri, 2, LINE, COLUMN, item["insertText"])
    if runs_command:
        driver.request("workspace/executeCommand", item["command"])
    assert driver.request("redraft/status", {})["accepted"] == before + 1


@pytest.mark.parametrize("name", ["copilot.vim", "copilot.lua"])
def test_copilots_protocol(connect: Connect, workspace: Path, name: str) -> None:
    driver = joined(connect, workspace, name)
    assert driver.request("checkStatus", {"options": {"localChecksOnly": True}})["status"] == "OK"
    assert driver.request("signIn", {})["status"] == "AlreadySignedIn"
    assert driver.request("getVersion", {})["version"]
    assert driver.request("setEditorInfo", {}) == "OK"
    driver.notify("textDocument/didFocus", {"textDocument": {"uri": "file:///a.py"}})
    uri = uri_of(workspace, f"{name}.py")
    driver.open(uri, TEXT, version=0)
    position = {"line": LINE, "character": COLUMN}
    document = {"uri": uri, "position": position, "version": 0, "insertSpaces": True}
    item = only(driver, driver.request("getCompletions", {"doc": document})["completions"])
    assert item["text"] == item["displayText"] != ""
    assert item["position"] == item["range"]["start"] == position
    assert driver.request("notifyShown", {"uuid": item["uuid"]}) == "OK"
    before = driver.request("redraft/status", {})["accepted"]
    assert driver.request("notifyAccepted", {"uuid": item["uuid"], "acceptedLength": 2}) == "OK"
    assert driver.request("redraft/status", {})["accepted"] == before + 1
    assert driver.request("notifyRejected", {"uuids": [item["uuid"]]}) == "OK"
    status = driver.wait_for(lambda message: message["method"] == "didChangeStatus")["params"]
    assert status["kind"] == "Normal"
    assert set(status) == {"busy", "kind", "message"}
    for bad in ({}, {"doc": 5}, {"doc": {"uri": uri}}):
        assert "error" in driver.answer(driver.start("getCompletions", bad))
    assert "error" in driver.answer(driver.start("notifyAccepted", {"uuid": "x"}))


@pytest.mark.parametrize("name", ["neovim", "helix", "eglot", "micro", "copilot.el"])
def test_a_reason_is_told_in_every_client(connect: Connect, workspace: Path, name: str) -> None:
    driver = joined(connect, workspace, name)
    if name == "copilot.el":
        driver.notify("textDocument/didFocus", {"textDocument": {"uri": "file:///a.py"}})
    uri = uri_of(workspace, f"{name}.env")
    driver.open(uri, "TOKEN=1\n", "dotenv")
    ask = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 0}}
    for _ in range(2):
        assert driver.request("textDocument/completion", ask)["items"] == []

    def tells(method: str, message: str = "secrets") -> dict[str, Any]:
        return driver.wait_for(
            lambda told: told["method"] == method and message in json.dumps(told["params"]), 20
        )["params"]

    if name == "copilot.el":
        assert tells("didChangeStatus")["kind"] == "Normal"
        return
    assert tells("window/logMessage")["message"].startswith("Redraft: ")
    if name != "micro":
        assert tells("$/progress")["value"]["kind"] == "begin"
    driver.request("workspace/executeCommand", {"command": "redraft.pause"})
    assert "redraft.resume" in tells("window/logMessage", "paused")["message"]
    lines = [told for told in driver.notifications if told["method"] == "window/logMessage"]
    assert len([told for told in lines if "secrets" in told["params"]["message"]]) == 1
