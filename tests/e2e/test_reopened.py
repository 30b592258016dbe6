"""A document that was opened again is another document, whatever its version says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .client import Driver
from .conftest import SHAPES

Connect = Callable[..., Driver]
CHANGED = "# A line that was not there.\n" + SHAPES
STALE = -32801
LINES = {"start": {"line": 0, "character": 0}, "end": {"line": 26, "character": 0}}
INSTRUCTION = "remove the docstring"


def close(driver: Driver, uri: str) -> None:
    driver.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


@contextmanager
def at_once(driver: Driver) -> Iterator[None]:
    """What is sent within arrives together: nothing is answered in between."""
    sent: list[bytes] = []
    send = driver.send_bytes
    driver.send_bytes = sent.append  # type: ignore[method-assign]
    try:
        yield
    finally:
        driver.send_bytes = send  # type: ignore[method-assign]
    driver.send_bytes(b"".join(sent))


def edit_of(uri: str, instruction: str, **more: Any) -> dict[str, Any]:
    return {"uri": uri, "range": LINES, "instruction": instruction, **more}


@pytest.mark.parametrize("text", [SHAPES, CHANGED], ids=["the same text", "another text"])
@pytest.mark.parametrize("version", [1, 0, 7])
def test_an_edit_that_runs_is_refused(
    connect: Connect, workspace: Path, text: str, version: int
) -> None:
    driver, uri = connect(), (workspace / "reopened.py").as_uri()
    driver.open(uri, SHAPES, version=1)
    with at_once(driver):
        running = driver.start("redraft/edit", edit_of(uri, INSTRUCTION, version=1))
        close(driver, uri)
        driver.open(uri, text, version=version)
    assert driver.answer(running)["error"]["code"] == STALE


def test_an_edit_of_a_document_that_was_renamed_is_refused(
    connect: Connect, workspace: Path
) -> None:
    driver, uri = connect(), (workspace / "before.py").as_uri()
    driver.open(uri, SHAPES, version=1)
    with at_once(driver):
        running = driver.start("redraft/edit", edit_of(uri, INSTRUCTION))
        close(driver, uri)
        driver.open((workspace / "after.py").as_uri(), SHAPES, version=1)
    assert driver.answer(running)["error"]["code"] == STALE


def test_the_server_applies_nothing_to_a_document_that_was_opened_again(
    connect: Connect, workspace: Path
) -> None:
    driver, uri = connect(), (workspace / "applied.py").as_uri()
    driver.open(uri, SHAPES, version=1)
    command = {"command": "redraft.runEdit", "arguments": [edit_of(uri, INSTRUCTION)]}
    with at_once(driver):
        running = driver.start("workspace/executeCommand", command)
        close(driver, uri)
        driver.open(uri, CHANGED, version=1)
    assert driver.answer(running)["error"]["code"] == STALE
    assert driver.applied == []


@pytest.mark.parametrize("language", ["python", "text"])
def test_an_action_that_was_offered_before_is_not_resolved(
    connect: Connect, workspace: Path, language: str
) -> None:
    driver, uri = connect(), (workspace / "offered.py").as_uri()
    driver.open(uri, SHAPES, version=1)
    actions = driver.request(
        "textDocument/codeAction",
        {"textDocument": {"uri": uri}, "range": LINES, "context": {"diagnostics": []}},
    )
    offered = [action for action in actions if "data" in action]
    assert offered
    close(driver, uri)
    driver.open(uri, CHANGED, language=language, version=1)
    for action in offered:
        answer = driver.answer(driver.start("codeAction/resolve", action))
        assert answer["error"]["code"] == STALE
        assert "opened again" in answer["error"]["message"]
