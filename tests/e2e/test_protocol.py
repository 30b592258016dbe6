"""What a hostile or broken client may send: an error, and the next message is answered."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from seeds import Amount

from .client import Driver, daemon_status, inline, profile

Connect = Callable[..., Driver]


def alive(driver: Driver) -> None:
    assert "state" in driver.request("redraft/status", {})


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


HOSTILE = {
    "a trillion bytes": b"Content-Length: 1000000000000\r\n\r\n",
    "5,000 digits": b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    "zero": b"Content-Length: 0\r\n\r\n",
    "negative": b"Content-Length: -1\r\n\r\n",
    "bad UTF-8": frame(b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}'),
    "deep": frame(b"[" * 200_000 + b"]" * 200_000),
    "batch": frame(b'[{"jsonrpc":"2.0","id":1,"method":"x"}]'),
    "null": frame(b"null"),
    "a number of 5,000 digits": frame(b"9" * 5000),
    "not JSON": frame(b"hello"),
    "no version": frame(b'{"id":1,"method":"redraft/status"}'),
    "an object as id": frame(b'{"jsonrpc":"2.0","id":{},"method":"redraft/status"}'),
    "a number as method": frame(b'{"jsonrpc":"2.0","id":1,"method":5}'),
}


@pytest.mark.parametrize("front", [True, False])
def test_hostile_bytes_cost_one_error(connect: Connect, front: bool) -> None:
    driver = connect(front=front)
    for name, data in HOSTILE.items():
        driver.send_bytes(data)
        error = driver.other.get(timeout=60)
        assert error["id"] is None, name
        assert error["error"]["code"] in (-32700, -32600), name
        assert "\n" not in error["error"]["message"], name
        alive(driver)


def test_unusual_headers_are_read(connect: Connect) -> None:
    driver = connect(front=True)
    for number, header in enumerate(
        (
            b"content-length: %d\r\n\r\n",
            b"Content-Type: text/json; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
        ),
        900,
    ):
        body = b'{"jsonrpc":"2.0","id":%d,"method":"redraft/status","params":{}}' % number
        driver.send_bytes(header % len(body) + body)
        assert driver.other.get(timeout=60)["result"]["state"]


def test_bad_parameters_are_answered(connect: Connect) -> None:
    driver = connect()
    for method, params in (
        ("textDocument/inlineCompletion", {}),
        ("textDocument/inlineCompletion", {"textDocument": 5}),
        ("textDocument/codeAction", None),
        ("workspace/executeCommand", {"command": 7}),
        ("workspace/executeCommand", {"command": "redraft.unknown"}),
        ("redraft/explain", {}),
        ("redraft/explain", None),
        ("nonsense/method", {}),
    ):
        answer = driver.answer(driver.start(method, params), 5)
        assert "error" in answer, method
        assert "\n" not in answer["error"]["message"]
    driver.notify("textDocument/didChange", {"textDocument": 1})
    driver.notify("textDocument/didClose", {"textDocument": {"uri": "file:///unknown"}})
    driver.notify("$/unknown", {})
    alive(driver)


def test_requests_before_initialize_and_after_shutdown_are_refused(connect: Connect) -> None:
    driver = connect(initialize=False, front=True)
    assert driver.answer(driver.start("redraft/status", {}))["error"]["code"] == -32002
    driver.initialize(profile("neovim"))
    again = driver.start("initialize", {"capabilities": {}, "processId": None, "rootUri": None})
    assert driver.answer(again)["error"]["code"] == -32600
    driver.request("shutdown", None)
    assert driver.answer(driver.start("redraft/status", {}))["error"]["code"] == -32600
    driver.notify("exit", None)
    assert driver.process.wait(60) == 0


def test_stray_ids_and_cancels_are_ignored(
    connect: Connect, environment: dict[str, str], amount: Amount
) -> None:
    """Ids that nobody knows: ignored, and no line of the log wasted on them."""
    driver = connect()
    count = amount(2000, 10_000)
    (log,) = Path(environment["HOME"]).rglob("daemon.log")
    before = log.stat().st_size
    rng = random.Random(5)
    for number in range(count):
        kind = rng.randrange(3)
        if kind == 0:
            driver.notify("$/cancelRequest", {"id": rng.choice([number, str(number)])})
        elif kind == 1:
            driver.send({"id": rng.choice([number, "redraft-1"]), "result": None})
        else:
            driver.send({"id": number, "error": {"code": 1, "message": "late"}})
    alive(driver)
    with log.open(encoding="utf-8") as file:
        file.seek(before)
        assert " ERROR " not in file.read()


@pytest.mark.parametrize("megabytes", [40, pytest.param(64, marks=pytest.mark.long)])
def test_an_absurd_document_is_refused_and_not_kept(
    connect: Connect, environment: dict[str, str], workspace: Path, megabytes: int
) -> None:
    import psutil

    driver, uri = connect(front=True), (workspace / "absurd.py").as_uri()
    daemon = psutil.Process(daemon_status(environment)["pid"])
    before = daemon.memory_info().rss
    driver.open(uri, "x = 1\n" * (megabytes * 1_000_000 // 7))
    error = driver.other.get(timeout=60)
    assert "larger than" in error["error"]["message"]
    alive(driver)
    assert daemon.memory_info().rss - before < 100 << 20


def test_a_very_large_document_is_taken(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(), (workspace / "large.py").as_uri()
    driver.open(uri, "x = 1\n" * (8 << 20 >> 3))
    alive(driver)


def test_fragments_and_floods_of_bytes_are_read(connect: Connect, workspace: Path) -> None:
    driver, uri = connect(front=True), (workspace / "fragments.py").as_uri()
    opened = {"uri": uri, "languageId": "python", "version": 1, "text": "é𝄞 = 1\n"}
    messages = [{"method": "textDocument/didOpen", "params": {"textDocument": opened}}] + [
        {"id": 5000 + number, "method": "redraft/status", "params": {}} for number in range(50)
    ]
    data = b"".join(
        frame(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode())
        for message in messages
    )
    for start in range(0, len(data), 3):
        driver.send_bytes(data[start : start + 3])
    ids = [driver.other.get(timeout=60)["id"] for _ in range(50)]
    assert ids == [5000 + number for number in range(50)]


def test_edits_of_an_unknown_document_do_not_stop_completion(
    connect: Connect, workspace: Path
) -> None:
    driver, uri = connect(), (workspace / "positions.py").as_uri()
    driver.open(uri, "x = 1\n")
    for line, character in ((99, 99), (0, 10_000), (2**31 - 1, 2**31 - 1)):
        result = driver.request("textDocument/inlineCompletion", inline(uri, line, character))
        assert "items" in result
    alive(driver)


def test_notebook_cells_see_the_cells_above(connect: Connect, workspace: Path) -> None:
    patient = {"settings": {"completion": {"timeoutMs": 60_000}}}
    driver = connect(initializationOptions=patient)
    notebook = (workspace / "book.ipynb").as_uri()
    cells = [f"vscode-notebook-cell:{notebook.removeprefix('file://')}#{n}" for n in range(2)]
    texts = ["class Rectangle:\n    def perimeter_of_all(self):\n        return 2\n",
             "value = Rectangle().perimeter_o"]  # fmt: skip
    driver.notify(
        "notebookDocument/didOpen",
        {
            "notebookDocument": {
                "uri": notebook,
                "notebookType": "jupyter-notebook",
                "version": 1,
                "cells": [{"kind": 2, "document": uri} for uri in cells],
            },
            "cellTextDocuments": [
                {"uri": uri, "languageId": "python", "version": 1, "text": text}
                for uri, text in zip(cells, texts, strict=True)
            ],
        },
    )
    params = inline(cells[1], 0, len(texts[1]))
    items = driver.request("textDocument/inlineCompletion", params)["items"]
    assert items[0]["insertText"].startswith("f_all")
