"""Address and key of a server are the user's own settings: no workspace sets them."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from text_cases import data_cases

from lsp_server.editor.daemon.connection import new_server
from lsp_server.editor.hub.hub import Hub
from lsp_server.editor.server import RedraftServer
from lsp_server.shared.settings import ADDRESS_OF_WORKSPACE, merged, read_settings, with_own_server

MINE = {"url": "https://mine.example.com", "key": "mine"}
THEIRS = {"url": "https://theirs.example.com", "key": "theirs", "fallback": "none"}


class Editor:
    """An editor whose answers hold what a workspace says."""

    def __init__(self, server: RedraftServer, configuration: Any) -> None:
        self.server = server
        self.asked: list[Any] = []
        self.told: list[str] = []
        self._configuration = configuration
        server.protocol.set_writer(self)  # type: ignore[arg-type]

    def write(self, data: bytes) -> None:
        for part in data.split(b"Content-Length: ")[1:]:
            message = json.loads(part.partition(b"\r\n\r\n")[2])
            if message.get("method") == "workspace/configuration":
                self.asked.append(message["params"])
                answer = {"id": message["id"], "result": [self._configuration]}
                asyncio.get_running_loop().call_soon(self.tell, answer)
            elif message.get("method") == "window/showMessage":
                self.told.append(message["params"]["message"])

    def close(self) -> None: ...

    def tell(self, message: dict[str, Any]) -> None:
        self.server.protocol.receive(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def start(self, folder: Path, settings: Any) -> None:
        uri = folder.as_uri()
        params = {
            "processId": None,
            "rootUri": uri,
            "workspaceFolders": [{"uri": uri, "name": "w"}],
            "capabilities": {"workspace": {"configuration": True}},
            "initializationOptions": {"settings": settings},
        }
        self.tell({"id": 1, "method": "initialize", "params": params})
        self.tell({"method": "initialized", "params": {}})
        await self.until_taken(33)

    async def until_taken(self, max_tokens: int) -> None:
        """Until the settings are those that hold this number."""
        limit = time.monotonic() + 60
        while self.server.settings.completion.max_tokens != max_tokens:
            assert time.monotonic() < limit, "the settings were not taken"
            await asyncio.sleep(0.005)


def started(
    folder: Path, settings: Any, environment: dict[str, str] | None = None
) -> tuple[RedraftServer, Editor]:
    """A server whose editor says in every later answer what a workspace says."""
    server = new_server(Hub())
    server.environment = environment or {}
    server.hub.clients = set()
    # No engine is to be started: what is looked at are the settings.
    server.join = lambda: None  # type: ignore[method-assign]
    editor = Editor(server, {"server": THEIRS, "completion": {"maxTokens": 33}})
    return server, editor


@pytest.mark.parametrize("settings", [{}, {"server": MINE}])
async def test_what_the_editor_answers_for_a_workspace_sets_no_server(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    server, editor = started(tmp_path, settings)
    await editor.start(tmp_path, settings)
    wanted = read_settings(settings).settings.server
    assert server.settings.server == wanted
    pushed = {"settings": {"redraft": {"server": THEIRS, "completion": {"maxTokens": 34}}}}
    editor.tell({"method": "workspace/didChangeConfiguration", "params": pushed})
    await editor.until_taken(34)
    assert server.settings.server == wanted
    assert editor.told == [f"Redraft settings: {ADDRESS_OF_WORKSPACE}"]
    # The section is asked for without the scope of a folder.
    assert editor.asked == [{"items": [{"section": "redraft"}]}]


async def test_the_environment_of_the_editor_names_the_server(tmp_path: Path) -> None:
    server, editor = started(tmp_path, {}, dict(MINE))
    await editor.start(tmp_path, {})
    assert (server.settings.server.url, server.settings.server.key) == tuple(MINE.values())


@pytest.mark.parametrize(
    ("later", "started_with", "environment", "server"),
    [
        ({"server": THEIRS}, {}, {}, None),
        ({"server": THEIRS}, {"server": MINE}, {}, MINE),
        ({}, {"server": MINE}, {"key": "other"}, MINE),
        ({}, {"server": {"url": "https://mine.example.com"}}, {"key": "mine"}, MINE),
        (None, None, MINE, MINE),
        ({"server": THEIRS}, "nonsense", {}, None),
    ],
)
def test_the_section_is_what_the_editor_was_started_with(
    later: Any, started_with: Any, environment: dict[str, str], server: Any
) -> None:
    assert (with_own_server(later, started_with, environment) or {}).get("server") == server


def test_a_section_that_cannot_be_read_is_reported_without_its_key() -> None:
    problems = read_settings({"server": {"key": ["plum"], "url": 1, "port": 2}}).problems
    assert len(problems) == 3
    assert "plum" not in str(problems)


START = {"nextEdits": {"gate": "quiet", "enabled": True}, "edit": {"presetInstructions": ["a"]},
         "context": {"models": {"/m": 900}}, "languages": {"go": False}}  # fmt: skip


@data_cases()
def test_a_partial_answer_leaves_the_rest_as_the_editor_was_started(
    later: Any, changed: dict[str, Any]
) -> None:
    assert merged(START, later) == {**START, **changed}


@pytest.mark.parametrize("started_with", [None, [], "x", 3])
def test_without_settings_at_the_start_the_answer_is_all(started_with: Any) -> None:
    assert merged(started_with, {"log": {"level": "info"}}) == {"log": {"level": "info"}}


@pytest.mark.parametrize("pushes", [False, True])
async def test_one_setting_of_a_section_keeps_its_neighbours(tmp_path: Path, pushes: bool) -> None:
    start = {"completion": {"maxTokens": 32, "gate": "quiet"}, "nextEdits": {"gate": "eager"}}
    server, editor = started(tmp_path, start)
    await editor.start(tmp_path, start)
    if pushes:
        settings = {"settings": {"redraft": {"completion": {"maxTokens": 34}}}}
        editor.tell({"method": "workspace/didChangeConfiguration", "params": settings})
        await editor.until_taken(34)
    assert len(editor.told) == 1
    found = server.settings
    assert (found.completion.gate, found.next_edits.gate) == ("quiet", "eager")
