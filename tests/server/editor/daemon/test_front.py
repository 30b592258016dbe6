"""What the front remembers of a session, so that another daemon can go on with it."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path
from typing import Any

import pytest

from lsp_server.editor.daemon import front as front_module
from lsp_server.editor.daemon.front import Front
from lsp_server.editor.daemon.session_memory import AGAIN, SessionMemory
from lsp_server.shared.errors import DaemonUnavailable
from lsp_server.text.documents.document import Document

Message = dict[str, Any]


def body(method: str, params: Any = None, msg_id: Any = None) -> bytes:
    message: Message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if msg_id is None else {**message, "id": msg_id}).encode()


def begun(encoding: str = "utf-16") -> SessionMemory:
    memory = SessionMemory()
    memory.note_sent(body("initialize", {"capabilities": {}}, 1))
    answer = {"id": 1, "result": {"capabilities": {"positionEncoding": encoding}}}
    assert memory.note_received(json.dumps(answer).encode())
    memory.note_sent(body("initialized", {}))
    return memory


def opened(memory: SessionMemory) -> dict[str, Message]:
    """Documents that a new daemon is told of."""
    return {
        one["params"]["textDocument"]["uri"]: one["params"]["textDocument"]
        for one in memory.replay()
        if one["method"] == "textDocument/didOpen"
    }


def open_document(memory: SessionMemory, uri: str, text: str) -> None:
    item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    memory.note_sent(body("textDocument/didOpen", {"textDocument": item}))


def change(memory: SessionMemory, uri: str, version: int, *changes: Message) -> None:
    document = {"uri": uri, "version": version}
    params = {"textDocument": document, "contentChanges": list(changes)}
    memory.note_sent(body("textDocument/didChange", params))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_every_typed_character_is_told_again(encoding: Any) -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    memory, expected = begun(encoding), Document("u", "python", 1, "é = 1\n𝄞\r\n")
    open_document(memory, "u", expected.text)
    for version in range(2, 300):
        text = "".join(rng.choices(string.ascii_letters + "é𝄞\n\r ", k=rng.randrange(4)))
        if rng.random() < 0.05:
            expected.replace_all(text)
            change(memory, "u", version, {"text": text})
            continue
        ends = sorted((rng.randrange(6), rng.randrange(9)) for _ in range(2))
        expected.change(ends[0], ends[1], text, encoding)
        start, end = ({"line": line, "character": column} for line, column in ends)
        change(memory, "u", version, {"range": {"start": start, "end": end}, "text": text})
    told = opened(memory)["u"]
    assert (told["text"], told["version"]) == (expected.text, 299), seed


def test_the_session_comes_in_order_and_without_what_was_closed() -> None:
    memory = begun()
    open_document(memory, "a", "A")
    open_document(memory, "b", "B")
    memory.note_sent(body("textDocument/didClose", {"textDocument": {"uri": "a"}}))
    memory.note_sent(body("workspace/didChangeConfiguration", {"settings": {"old": 1}}))
    memory.note_sent(body("workspace/didChangeConfiguration", {"settings": {"new": 1}}))
    memory.note_sent(body("workspace/didChangeWorkspaceFolders", {"event": {}}))
    memory.note_sent(body("workspace/executeCommand", {"command": "redraft.pause"}, 7))
    methods = [one["method"] for one in memory.replay()]
    assert methods == [
        "initialize",
        "initialized",
        "workspace/didChangeConfiguration",
        "workspace/didChangeWorkspaceFolders",
        "textDocument/didOpen",
        "workspace/executeCommand",
    ]
    assert memory.replay()[2]["params"] == {"settings": {"new": 1}}
    memory.note_sent(body("workspace/executeCommand", {"command": "redraft.resume"}, 8))
    assert memory.replay()[-1]["method"] == "textDocument/didOpen"


def test_notebooks_are_told_again_with_their_cells() -> None:
    memory = begun()
    cells = [{"kind": 2, "document": uri} for uri in ("c1", "c2")]
    notebook = {"uri": "n", "notebookType": "j", "version": 1, "cells": cells}
    items = [
        {"uri": uri, "languageId": "python", "version": 1, "text": uri} for uri in ("c1", "c2")
    ]
    params = {"notebookDocument": notebook, "cellTextDocuments": items}
    memory.note_sent(body("notebookDocument/didOpen", params))
    array = {"start": 1, "deleteCount": 1, "cells": [{"kind": 2, "document": "c3"}]}
    structure = {
        "array": array,
        "didOpen": [{"uri": "c3", "languageId": "python", "version": 1, "text": "x"}],
        "didClose": [{"uri": "c2"}],
    }
    content = {"document": {"uri": "c1", "version": 2}, "changes": [{"text": "y"}]}
    changed = {"cells": {"structure": structure, "textContent": [content]}}
    told = {"uri": "n", "version": 2}
    memory.note_sent(
        body("notebookDocument/didChange", {"notebookDocument": told, "change": changed})
    )
    again = memory.replay()[-1]
    assert again["method"] == "notebookDocument/didOpen"
    texts = {one["uri"]: one["text"] for one in again["params"]["cellTextDocuments"]}
    assert texts == {"c1": "y", "c3": "x"}
    assert opened(memory) == {}


def test_open_requests_are_answered_and_progress_ends_once() -> None:
    memory = begun()
    memory.note_sent(body("textDocument/inlineCompletion", {}, 5))
    memory.note_sent(body("shutdown", None, "s"))
    value = {"token": "t", "value": {"kind": "begin", "title": "x"}}
    assert memory.note_received(body("$/progress", value))
    told = memory.farewell(-32801, "gone")
    assert told[0] == {"id": 5, "error": {"code": -32801, "message": "gone"}}
    assert told[1] == {"id": "s", "result": None}
    assert told[2]["params"]["value"]["kind"] == "end"
    assert memory.farewell(-32801, "gone") == []
    assert memory.ending


def test_an_open_initialize_is_put_to_the_next_daemon_as_it_is() -> None:
    memory = SessionMemory()
    memory.note_sent(body("initialize", {}, 1))
    for _ in range(2):
        assert memory.farewell(-32801, "gone") == []
        assert [one["id"] for one in memory.replay()] == [1]
    assert memory.note_received(b'{"id":1,"result":{"capabilities":{}}}')
    assert [one["id"] for one in memory.replay()] == [f"{AGAIN}initialize"]


def test_answers_to_what_is_repeated_are_not_for_the_editor() -> None:
    memory = begun()
    assert memory.replay()[0]["id"] == f"{AGAIN}initialize"
    assert not memory.note_received(json.dumps({"id": f"{AGAIN}initialize", "result": {}}).encode())
    assert memory.note_received(b'{"id":99,"result":null}')


@pytest.mark.parametrize(
    "hostile",
    [b"", b"[]", b"null", b"{", b"9" * 5000, b"[" * 100_000, b'{"method":5}', b"\xff",
     body("textDocument/didOpen", None), body("textDocument/didChange", {"textDocument": 1}),
     body("textDocument/didChange", {"textDocument": {"uri": "u"}, "contentChanges": [{}]}),
     body("notebookDocument/didChange", {"notebookDocument": {"uri": "x"}}),
     body("workspace/executeCommand", 5), body("initialize", None, {})],
)  # fmt: skip
def test_what_cannot_be_understood_is_left_to_the_daemon(hostile: bytes) -> None:
    memory = begun()
    open_document(memory, "u", "x")
    memory.note_sent(hostile)
    assert opened(memory)["u"]["text"] == "x"


def test_an_editor_that_did_not_begin_has_nothing_to_repeat() -> None:
    assert SessionMemory().replay() == []
    memory = SessionMemory()
    memory.note_sent(body("initialize", {}, 1))
    assert [one["id"] for one in memory.replay()] == [1]


class Recorder(Front):
    """A front whose words are kept."""

    def __init__(self) -> None:
        super().__init__(Path("/nowhere"), None, SessionMemory())  # type: ignore[arg-type]
        self.told: list[Message] = []

    def _tell(self, messages: Any) -> None:
        self.told += messages


def test_the_first_restart_is_at_once_and_later_ones_wait_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(front_module.time, "monotonic", lambda: now)
    front = Recorder()
    waits = []
    for _ in range(12):
        waits.append(front._back_off())
        front._say_what_happened(waits[-1])
        now += waits[-1]
    assert waits[:3] == [0.0, 0.5, 1.0]
    assert waits == sorted(waits)
    assert max(waits) == front_module.LONGEST_BACK_OFF_S
    methods = [one["method"] for one in front.told]
    assert methods[:2] == ["window/logMessage"] * 2
    assert set(methods[2:]) == {"window/showMessage"}
    assert all("\n" not in one["params"]["message"] for one in front.told)
    now += front_module.RECENT_S + 1
    assert front._back_off() == 0.0, "old accidents are forgotten"


def test_a_front_that_finds_no_daemon_ends_more_seldom_than_an_editor_gives_up(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    waited: list[float] = []

    def fail(*_: Any, **__: Any) -> None:
        raise DaemonUnavailable("the daemon does not start")

    monkeypatch.setattr(front_module, "connect", fail)
    monkeypatch.setattr(front_module, "_wait_for_editor", waited.append)
    monkeypatch.setattr(front_module, "_exit", lambda code: code)
    assert front_module.serve() == 1
    assert capfd.readouterr().err == "redraft: the daemon does not start\n"
    # Five ends in three minutes are too many.
    assert 5 * waited[0] > 180
