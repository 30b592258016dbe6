"""Edits by instruction through the real processes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from .client import Driver
from .conftest import SHAPES

Connect = Callable[..., Driver]
FUNCTIONS = {"area": (8, 10), "scale": (13, 17), "total_area": (20, 25)}
"""First and last line of functions in the text, 0-based."""
INSTRUCTIONS = ["remove the docstring", "rename the function {name} to {name}_of"]


def span(first: int, last: int) -> dict[str, Any]:
    end = len(SHAPES.split("\n")[last])
    return {"start": {"line": first, "character": 0}, "end": {"line": last, "character": end}}


def applied(text: str, hunks: list[dict[str, Any]]) -> str:
    """The hunks put into ASCII text by hand, last one first."""
    lines = text.split("\n")
    for hunk in reversed(hunks):
        start, end = hunk["range"]["start"], hunk["range"]["end"]
        head = lines[start["line"]][: start["character"]]
        tail = lines[end["line"]][end["character"] :]
        inside = "\n".join(lines[start["line"] : end["line"] + 1])
        assert hunk["oldText"] in inside
        lines[start["line"] : end["line"] + 1] = (head + hunk["newText"] + tail).split("\n")
    return "\n".join(lines)


def edits(driver: Driver, uri: str, **more: Any) -> list[dict[str, Any]]:
    """Answers of all functions and instructions that the model could do."""
    answers = []
    for name, (first, last) in FUNCTIONS.items():
        for instruction in INSTRUCTIONS:
            params = {
                "textDocument": {"uri": uri, "version": 1},
                "range": span(first, last),
                "instruction": instruction.format(name=name),
                **more,
            }
            answer = driver.answer(driver.start("redraft/edit", params))
            if "error" in answer:
                # A small model may fail at it, and must then be told so in one line.
                assert answer["error"]["code"] == -32803
                assert "\n" not in answer["error"]["message"]
            else:
                answers.append(answer["result"])
    return answers


def test_an_edit_is_hunks_that_make_the_new_text_and_nothing_else(
    connect: Connect, workspace: Path
) -> None:
    driver, uri = connect(), (workspace / "edit.py").as_uri()
    driver.open(uri, SHAPES)
    answers = edits(driver, uri)
    assert answers, "the model could do none of the edits"
    forwards, tokens = (
        sum(answer["statistics"][name] for answer in answers) for name in ("forwards", "tokens")
    )
    assert forwards < tokens, "drafts are accepted"
    for answer in answers:
        new = applied(SHAPES, answer["hunks"])
        assert answer["text"] in new
        assert answer["version"] == 1
        statistics = answer["statistics"]
        # The end that the model writes takes a forward, too, and is no token of the text.
        assert statistics["forwards"] <= statistics["tokens"] + 1
        assert "".join(one["text"] for one in statistics["spans"]).rstrip("\n") in answer[
            "text"
        ] + ("\n" + "".join(one["text"] for one in statistics["spans"]))
        (changes,) = answer["edit"]["documentChanges"]
        assert changes["textDocument"] == {"uri": uri, "version": 1}
        assert len(changes["edits"]) == len(answer["hunks"])
        assert all("annotationId" in one for one in changes["edits"])


def test_progress_and_stream_come_on_the_clients_tokens(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(), (workspace / "stream.py").as_uri()
    driver.open(uri, SHAPES)
    first, last = FUNCTIONS["total_area"]
    params = {
        "textDocument": {"uri": uri},
        "range": span(first, last),
        "instruction": "add a docstring",
        "workDoneToken": "work",
        "streamToken": "stream",
    }
    driver.answer(driver.start("redraft/edit", params))
    kinds = [
        message["params"]["value"]["kind"]
        for message in driver.notifications
        if message["method"] == "$/progress" and message["params"]["token"] == "work"
    ]
    assert kinds[0] == "begin"
    assert kinds[-1] == "end"
    texts = [
        message["params"]["text"]
        for message in driver.notifications
        if message["method"] == "redraft/editProgress"
    ]
    assert texts
    assert all(later.startswith(former) for former, later in pairwise(texts))


def test_neovim_gets_plain_changes(connect: Connect, workspace: Path) -> None:
    driver, uri = connect("neovim"), (workspace / "neovim.py").as_uri()
    driver.open(uri, SHAPES)
    answers = edits(driver, uri)
    assert answers
    assert all(set(answer["edit"]) == {"changes"} for answer in answers)
    assert all(list(answer["edit"]["changes"]) == [uri] for answer in answers)


def test_the_server_applies_edits_for_clients_without_a_plugin(
    connect: Connect, workspace: Path
) -> None:
    driver, uri = connect(), (workspace / "run_edit.py").as_uri()
    driver.open(uri, SHAPES)
    outcomes = []
    for first, last in FUNCTIONS.values():
        argument = {
            "uri": uri,
            "version": 1,
            "range": span(first, last),
            "instruction": "remove the docstring",
        }
        command = {"command": "redraft.runEdit", "arguments": [argument]}
        outcomes.append(driver.answer(driver.start("workspace/executeCommand", command)))
    done = [one["result"] for one in outcomes if "result" in one]
    assert done
    assert len(driver.applied) == len(done)
    assert all("label" in one for one in driver.applied)


def test_a_stale_version_is_refused(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(), (workspace / "stale.py").as_uri()
    driver.open(uri, SHAPES, version=3)
    params = {
        "textDocument": {"uri": uri, "version": 2},
        "range": span(13, 17),
        "instruction": "remove the docstring",
    }
    assert driver.answer(driver.start("redraft/edit", params))["error"]["code"] == -32801


def test_typing_inside_refuses_and_typing_above_moves(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(), (workspace / "meanwhile.py").as_uri()
    driver.open(uri, SHAPES)
    first, last = FUNCTIONS["scale"]
    params = {
        "textDocument": {"uri": uri, "version": 1},
        "range": span(first, last),
        "instruction": "remove the docstring",
    }
    inside = driver.start("redraft/edit", params)
    driver.insert(uri, 2, first + 2, 0, "# mine\n")
    assert driver.answer(inside)["error"]["code"] in (-32801, -32803)
    moved = []
    for version, (begin, end) in enumerate(FUNCTIONS.values(), 3):
        driver.open(uri, SHAPES, version=2 * version)
        params = {**params, "textDocument": {"uri": uri}, "range": span(begin, end)}
        above = driver.start("redraft/edit", params)
        driver.insert(uri, 2 * version + 1, 0, 0, "# 𝄞 above\n\n")
        moved.append(driver.answer(above))
    results = [one["result"] for one in moved if "result" in one]
    assert results, moved
    for result in results:
        assert result["text"] in applied("# 𝄞 above\n\n" + SHAPES, result["hunks"])


@pytest.mark.parametrize("how", ["request", "progress"])
def test_an_edit_is_cancelled(connect: Connect, workspace: Path, how: str) -> None:
    driver, uri = connect(), (workspace / f"cancel_{how}.py").as_uri()
    driver.open(uri, SHAPES * 3)
    params = {
        "textDocument": {"uri": uri},
        "range": {"start": {"line": 0, "character": 0}, "end": {"line": 60, "character": 0}},
        "instruction": "add a docstring",
        "workDoneToken": "work",
    }
    number = driver.start("redraft/edit", params)
    driver.wait_for(lambda message: message["method"] == "$/progress"
                    and message["params"]["token"] == "work")  # fmt: skip
    if how == "request":
        driver.notify("$/cancelRequest", {"id": number})
        assert driver.answer(number, 120)["error"]["code"] == -32800
    else:
        driver.notify("window/workDoneProgress/cancel", {"token": "work"})
        assert "cancelled" in driver.answer(number, 120)["error"]["message"]


def test_code_actions_and_their_edits(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(), (workspace / "actions.py").as_uri()
    comment = "# redraft: remove the docstring\n"
    lines = SHAPES.split("\n")
    first = FUNCTIONS["scale"][0]
    text = "\n".join([*lines[:first], comment.strip(), *lines[first:]])
    driver.open(uri, text)
    context = {"diagnostics": []}
    where = {"start": {"line": first, "character": 0}, "end": {"line": first + 5, "character": 0}}
    params = {"textDocument": {"uri": uri}, "range": where, "context": context}
    actions = driver.request("textDocument/codeAction", params)
    titles = [action["title"] for action in actions]
    assert titles[0] == "Edit with instruction…"
    assert actions[0]["command"]["command"] == "redraft.editWithInstruction"
    assert actions[0]["command"]["arguments"][0]["version"] == 1
    assert all(action["kind"] == "refactor.rewrite" for action in actions)
    assert all(action["tags"] == [1] for action in actions)
    commented = next(action for action in actions if action["title"].startswith("Redraft: remove"))
    answer = driver.answer(driver.start("codeAction/resolve", commented))
    if "result" in answer:
        (changes,) = answer["result"]["edit"]["documentChanges"]
        hunks = [{**one, "oldText": ""} for one in changes["edits"]]
        assert comment not in applied(text, hunks)
    else:
        assert answer["error"]["code"] == -32803
    only = {**params, "context": {"diagnostics": [], "only": ["source.organizeImports"]}}
    assert driver.request("textDocument/codeAction", only) == []


def test_bad_edit_parameters_are_one_line_errors(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(), (workspace / "bad.py").as_uri()
    driver.open(uri, SHAPES)
    document = {"uri": uri}
    for params in (
        {"textDocument": document, "instruction": "x"},
        {"textDocument": document, "range": span(13, 17), "instruction": "   "},
        {"textDocument": document, "range": {"start": 1}, "instruction": "x"},
        {"textDocument": {"uri": "file:///nowhere.py"}, "range": span(0, 1), "instruction": "x"},
        {"textDocument": document, "range": span(11, 11), "instruction": "x"},
        {},
        None,
        [1],
    ):
        error = driver.answer(driver.start("redraft/edit", params))["error"]
        assert "\n" not in error["message"]
        assert error["message"]
