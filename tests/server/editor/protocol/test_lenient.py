"""Requests of clients that leave out what most send, or announce what nobody can read."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest
from text_cases import data_cases

from lsp_server.editor.daemon.connection import new_server
from lsp_server.editor.hub.hub import Hub
from lsp_server.editor.server import RedraftServer

URI = "file:///nowhere/a.py"
START = {"line": 0, "character": 0}
OPENED = {"uri": URI, "languageId": "python", "version": 1, "text": "abc\n"}
CAPABILITIES = {
    "window": {"workDoneProgress": True},
    "textDocument": {
        "inlineCompletion": {},
        "inlayHint": {"resolveSupport": {}},
        "rename": {"prepareSupportDefaultBehavior": "a new kind"},
    },
}


class Sent:
    """What the server sent."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.messages.append(json.loads(data.partition(b"\r\n\r\n")[2]))

    def close(self) -> None: ...


def answers(*messages: tuple[str, Any]) -> tuple[RedraftServer, list[dict[str, Any]]]:
    """Return a server and its answers to messages, each a request but for ``did…``."""

    async def run() -> tuple[RedraftServer, list[dict[str, Any]]]:
        server, sent = new_server(Hub()), Sent()
        server.protocol.set_writer(sent)
        requests = 0
        for number, (method, params) in enumerate(messages):
            message = {"jsonrpc": "2.0", "method": method, "params": copy.deepcopy(params)}
            is_request = "/did" not in method
            requests += is_request
            server.protocol.receive(
                json.dumps(message | ({"id": number} if is_request else {})).encode()
            )
            await asyncio.sleep(0)
        for _ in range(3000):
            answered = [message for message in sent.messages if isinstance(message.get("id"), int)]
            if len(answered) == requests:
                break
            await asyncio.sleep(0.01)
        server.leave()
        return server, answered

    return asyncio.run(run())


def initialize(**params: Any) -> tuple[str, Any]:
    return "initialize", {"processId": None, "rootUri": None, "capabilities": {}, **params}


@data_cases()
def test_requests_without_what_others_send_are_answered(method: str, params: Any) -> None:
    begun = initialize(initializationOptions={"completion": {"timeoutMs": 100}})
    _, (_, answer) = answers(
        begun, ("textDocument/didOpen", {"textDocument": OPENED}), (method, params)
    )
    assert "result" in answer, answer


@data_cases()
def test_a_client_is_served_whatever_it_says_of_itself(params: Any) -> None:
    _, (answer,) = answers(initialize(**params))
    assert "result" in answer, answer


def test_what_can_be_read_of_capabilities_counts() -> None:
    server, (answer,) = answers(initialize(capabilities=CAPABILITIES))
    assert answer["result"]["capabilities"]["inlineCompletionProvider"] is not None
    assert server.features.work_done_progress


def test_versions_and_languages_may_be_missing() -> None:
    bare = {"uri": URI, "text": "abc\n"}
    change = {"textDocument": {"uri": URI, "version": None}, "contentChanges": [{"text": "b"}]}
    server, _ = answers(
        initialize(),
        ("textDocument/didOpen", {"textDocument": bare}),
        ("textDocument/didChange", change),
    )
    assert server.documents.get(URI).text == "b"


@pytest.mark.parametrize("broken", [{"start": START}, {"start": START, "end": "x"}, 5])
def test_a_change_that_cannot_be_read_changes_nothing(broken: Any) -> None:
    change = {"textDocument": {"uri": URI}, "contentChanges": [{"range": broken, "text": "b"}]}
    server, _ = answers(
        initialize(),
        ("textDocument/didOpen", {"textDocument": OPENED}),
        ("textDocument/didChange", change),
    )
    assert server.documents.get(URI).text == "abc\n"
