"""Next edits through the real server: as Redraft's clients ask, and as Copilot's do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .client import Driver, inline, profile, wait_until

Connect = Callable[..., Driver]
TEXT = "def total(prices):\n    kept = prices\n    return sum(prices) + len(kept)\n"


def changed(
    driver: Driver, uri: str, version: int, line: int, span: tuple[int, int], new: str
) -> None:
    where = {
        "start": {"line": line, "character": span[0]},
        "end": {"line": line, "character": span[1]},
    }
    driver.notify(
        "textDocument/didChange",
        {
            "textDocument": {"uri": uri, "version": version},
            "contentChanges": [{"range": where, "text": new}],
        },
    )


def asked(uri: str, line: int, character: int) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


def test_a_rename_is_followed_taken_and_dismissed(connect: Connect, workspace: Path) -> None:
    driver = connect()
    uri = (workspace / "followed.py").as_uri()
    driver.open(uri, TEXT)
    changed(driver, uri, 2, 0, (10, 16), "amounts")
    found = driver.request("redraft/nextEdit", asked(uri, 0, 17))["edits"]
    assert [one["range"]["start"] for one in found] == [
        {"line": 1, "character": 11},
        {"line": 2, "character": 15},
    ]
    assert {one["text"] for one in found} == {"amounts"}
    assert {one["title"] for one in found} == {"rename prices to amounts"}
    assert found[0]["textDocument"] == {"uri": uri, "version": 2}
    changed(driver, uri, 3, 1, (11, 17), "amounts")
    driver.request("workspace/executeCommand", found[0]["command"])
    (left,) = driver.request("redraft/nextEdit", asked(uri, 1, 18))["edits"]
    assert left["number"] == found[1]["number"]
    rejected = {"command": "redraft.nextEdit.rejected", "arguments": [{"number": left["number"]}]}
    driver.request("workspace/executeCommand", rejected)
    assert driver.request("redraft/nextEdit", asked(uri, 1, 18)) == {"edits": []}


def test_clients_of_copilots_server_get_them_by_its_method(
    connect: Connect, workspace: Path
) -> None:
    driver = connect("neovim")
    uri = (workspace / "inline.py").as_uri()
    driver.open(uri, TEXT)
    driver.notify("textDocument/didFocus", {"textDocument": {"uri": uri}})
    changed(driver, uri, 2, 0, (10, 16), "amounts")
    answer = driver.request("textDocument/copilotInlineEdit", asked(uri, 0, 17))
    assert [one["text"] for one in answer["edits"]] == ["amounts", "amounts"]
    driver.notify(
        "textDocument/didShowInlineEdit", {"item": {"command": answer["edits"][0]["command"]}}
    )
    assert driver.request("workspace/executeCommand", answer["edits"][0]["command"]) is None


def test_files_that_may_hold_secrets_have_none(connect: Connect, workspace: Path) -> None:
    driver = connect()
    uri = (workspace / ".env.local").as_uri()
    driver.open(uri, TEXT)
    changed(driver, uri, 2, 0, (10, 16), "amounts")
    assert driver.request("redraft/nextEdit", asked(uri, 0, 17)) == {"edits": []}


def test_they_are_switched_off_by_a_setting(connect: Connect, workspace: Path) -> None:
    settings = {"settings": {"nextEdits": {"enabled": False}}}
    driver = connect(initializationOptions=settings)
    uri = (workspace / "off.py").as_uri()
    driver.open(uri, TEXT)
    changed(driver, uri, 2, 0, (10, 16), "amounts")
    assert driver.request("redraft/nextEdit", asked(uri, 0, 17)) == {"edits": []}


SIZES = """from shapes import Rectangle, scale


def double(rectangle):
    width = rectangle.width * 2
    height = rectangle.hei
"""


def test_ghost_text_waits_for_the_next_edits_of_a_client_that_draws_them(
    connect: Connect, workspace: Path
) -> None:
    def suggested(driver: Driver, end: int, kind: int = 2) -> list[Any]:
        found = driver.request("textDocument/inlineCompletion", inline(uri, 5, end, kind))
        return list(found["items"])

    for draws in (False, True):
        driver = connect(initializationOptions={"settings": {"completion": {"gate": "off"}}})
        uri = (workspace / f"sizes_{draws}.py").as_uri()
        driver.open(uri, SIZES)
        end = len("    height = rectangle.hei")
        wait_until(lambda: bool(suggested(driver, end)))  # noqa: B023
        if draws:
            driver.request("redraft/nextEdit", asked(uri, 5, end))
        changed(driver, uri, 2, 3, (11, 20), "rectangles")
        assert bool(suggested(driver, end)) is not draws
        assert suggested(driver, end, kind=1)
        changed(driver, uri, 3, 4, (12, 21), "rectangles")
        assert bool(suggested(driver, end)) is not draws
        changed(driver, uri, 4, 5, (13, 22), "rectangles")
        assert bool(suggested(driver, end + 1)) is not draws, "none is left, and no key was typed"
        changed(driver, uri, 5, 5, (end + 1, end + 1), "g")
        assert suggested(driver, end + 2)


BOX = """\
class Box:
    def __init__(self, width):
        self.width = width

    def area(self):
        return self.width * self.width
"""


def with_the_default_model(connect: Connect, workspace: Path, model: Path) -> Driver:
    """A client that it is ready for."""
    driver = connect(initialize=False)
    settings = {"model": {"path": str(model)}, "nextEdits": {"gate": "off", "format": "redraft"}}
    driver.initialize(profile("neovim"), workspace, settings=settings)
    driver.wait_for(
        lambda message: (
            message["method"] == "redraft/status"
            and message["params"]["nextEdits"]["format"] == "redraft"
        ),
        240,
    )
    return driver


@pytest.mark.model
def test_the_default_model_is_asked_where_edits_settle_nothing(
    connect: Connect, workspace: Path, default_model: Path
) -> None:
    driver = with_the_default_model(connect, workspace, default_model)
    uri = (workspace / "box.py").as_uri()
    driver.open(uri, BOX)
    for number, one in enumerate(", height"):
        driver.insert(uri, 2 + number, 1, 28 + number, one)
    found = driver.request("redraft/nextEdit", asked(uri, 1, 36), 120)["edits"]
    status = driver.request("redraft/status", {})["nextEdits"]
    assert status["threshold"] == 0
    assert found or status["reason"]
    for one in found:
        assert one["title"].split()[0] in ("insert", "change", "delete")
        assert one["textDocument"] == {"uri": uri, "version": 9}
        assert "height" not in one["title"] or "height" in one["text"]
    driver.insert(uri, 10, 1, 36, "s")
    assert driver.request("redraft/nextEdit", asked(uri, 1, 37), 120) is not None


def test_a_model_that_was_not_trained_for_next_edits_is_not_asked(
    connect: Connect, workspace: Path
) -> None:
    driver = connect()
    uri = (workspace / "plain_box.py").as_uri()
    driver.open(uri, BOX)
    for number, one in enumerate(", height"):
        driver.insert(uri, 2 + number, 1, 28 + number, one)
    assert driver.request("redraft/nextEdit", asked(uri, 1, 36)) == {"edits": []}
    status = driver.request("redraft/status", {})["nextEdits"]
    assert (status["format"], status["trouble"]) == ("", "")
