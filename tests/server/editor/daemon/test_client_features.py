"""What is read from the capabilities of real editors, and what is answered to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from text_cases import data_cases

from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.editor.daemon.connection import new_server
from lsp_server.editor.handlers import initialize
from lsp_server.editor.hub.hub import Hub
from lsp_server.editor.protocol.capabilities import EDIT_COMMAND, offers_menu, server_capabilities
from lsp_server.editor.protocol.client_features import ClientFeatures
from lsp_server.editor.protocol.jsonrpc import make_converter
from lsp_server.editor.protocol.lenient import fill_in
from lsp_server.editor.requests.completions import Cursor, menu_items
from lsp_server.shared.settings import Settings

DATA = Path(__file__).resolve().parents[3] / "data"
CONVERTER = make_converter()
CLIENTS: dict[str, Any] = json.loads((DATA / "clients.json").read_text())
WITH_INLINE = {"lsp-mode", "lsp4ij", "copilot.el", "copilot.vim", "copilot.lua"}


def features(params: dict[str, Any]) -> ClientFeatures:
    full = {"processId": None, "rootUri": None, **params}
    return ClientFeatures.of(CONVERTER.structure(full, types.InitializeParams))


def profile(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((DATA / f"client_{name}.json").read_text())
    return loaded


def test_vscode() -> None:
    read = features(profile("vscode"))
    assert read.encoding == "utf-16"
    assert read.inline_completion
    assert read.document_changes
    assert read.change_annotations
    assert read.edit_command
    assert read.generated_tag
    assert not read.unresolved_actions
    assert read.watches_files


def test_neovim() -> None:
    read = features(profile("neovim"))
    assert read.encoding == "utf-8"
    assert read.inline_completion
    assert not read.document_changes
    assert not read.edit_command
    assert not read.generated_tag
    assert not read.watches_files


def test_sublime_text() -> None:
    read = features(profile("sublime"))
    assert not read.inline_completion
    assert read.indents_items
    assert read.generated_tag
    assert not read.unresolved_actions
    assert not features(profile("vscode")).indents_items
    assert not features(profile("kate")).indents_items


def test_kate_applies_edits_when_its_settings_say_so() -> None:
    silent = profile("kate")
    read = features(silent)
    assert read.unresolved_actions
    assert not read.apply_edit
    told = {**silent, "initializationOptions": {"redraft": {"applyEdit": True}}}
    assert features(told).apply_edit


def items(read: ClientFeatures, text: str) -> list[types.CompletionItem]:
    """Items for a suggestion behind a word on an indented line."""
    ask = CompletionRequest("file:///a.py", "a.py", "", "python", "def f(x):\n    if x", "")
    here = types.Position(1, 8)
    cursor = Cursor(ask, types.Range(here, here), "")
    return list(menu_items(cursor, [text], read, 1).items)


def test_an_editor_that_indents_is_given_lines_without_the_indentation() -> None:
    text = " > 0:\n        return x\n\n    return 0\n\ndef g"
    (as_is,) = items(ClientFeatures(), text)
    assert isinstance(as_is.text_edit, types.TextEdit)
    assert as_is.text_edit.new_text == "x" + text
    assert as_is.insert_text_mode == types.InsertTextMode.AsIs
    (indented,) = items(features(profile("sublime")), text)
    assert isinstance(indented.text_edit, types.TextEdit)
    assert indented.text_edit.new_text == "x > 0:\n    return x\n\nreturn 0"
    assert indented.insert_text_mode == types.InsertTextMode.AdjustIndentation
    assert items(features(profile("sublime")), "\ndef g") == []


@data_cases()
def test_the_first_encoding_that_is_known(offered: list[str] | None, chosen: str) -> None:
    general = {} if offered is None else {"positionEncodings": offered}
    assert features({"capabilities": {"general": general}}).encoding == chosen


def test_a_client_that_says_nothing_is_offered_the_menu() -> None:
    read = features({"capabilities": {}})
    assert read.unresolved_actions
    capabilities = server_capabilities(read, Settings())
    assert offers_menu(read, Settings())
    assert capabilities.completion_provider is not None
    assert capabilities.inline_completion_provider is None


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_each_client_is_offered_what_it_shows(name: str) -> None:
    """vim-lsp takes any provider of inline completions as its own and loses text by it."""
    params = json.loads(json.dumps(CLIENTS[name]))
    fill_in("initialize", params)
    read = features(params)
    capabilities = server_capabilities(read, Settings())
    assert (capabilities.inline_completion_provider is not None) == (name in WITH_INLINE)
    assert capabilities.completion_provider is not None
    assert "." in (capabilities.completion_provider.trigger_characters or [])
    assert name not in ("copilot.vim", "copilot.lua") or read.encoding == "utf-16"


def test_vim_lsp_is_never_offered_inline_completion() -> None:
    params = {"clientInfo": {"name": "vim-lsp"}, "capabilities": profile("neovim")["capabilities"]}
    assert server_capabilities(features(params), Settings()).inline_completion_provider is None


@pytest.mark.parametrize("params", [None, 5, {"capabilities": {"textDocument": []}}])
def test_strange_capabilities_announce_nothing(params: Any) -> None:
    before = json.dumps(params)
    fill_in("initialize", params)
    assert json.dumps(params) == before


def test_the_clients_own_command_is_not_announced() -> None:
    capabilities = server_capabilities(features(profile("vscode")), Settings())
    assert capabilities.execute_command_provider is not None
    assert EDIT_COMMAND not in capabilities.execute_command_provider.commands
    assert capabilities.completion_provider is None


@pytest.mark.parametrize("options", [None, 5, [], {"redraft": 3}, {"settings": 7}])
def test_strange_options_do_no_harm(options: Any) -> None:
    assert not features({"capabilities": {}, "initializationOptions": options}).edit_command


def test_settings_that_stand_in_another_place_are_told() -> None:
    shown: list[dict[str, Any]] = []
    server = new_server(Hub())
    server.protocol.tell = lambda _method, params: shown.append(params)  # type: ignore[assignment]
    for options in (
        {"settings": {"model": {}}, "redraft": {"applyEdit": True}, "other": 1},
        {"model": {"path": "a.gguf"}, "redraft": {"completion": {}, "editCommand": True}},
    ):
        params = {"capabilities": {}, "initializationOptions": options, "processId": None}
        initialize(server, CONVERTER.structure(params, types.InitializeParams))
    (told,) = [params["message"] for params in shown if "initializationOptions" in str(params)]
    assert "Redraft settings: model, redraft.completion in initializationOptions" in told
