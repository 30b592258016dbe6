"""Sublime Text, Kate and Kakoune by what they send: capabilities and the page's settings.

What these editors do with the answers is done here as they do it. Sublime Text comes in no package
to install, nor does kakoune-lsp, of which version 21 was read; Kate's newest version comes later
than the one that is run for real.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tomllib
from installed import CLIENTS, ROOT, Server
from language_client import LanguageClient
from prepared import prepared_comment, prepared_place
from waiting import wait_for

pytestmark = pytest.mark.editors


def settings_of_the_page(editor: str) -> dict[str, Any]:
    """The settings that other-editors.md gives for an editor."""
    page = (CLIENTS / "other-editors.md").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(
        page.split(f"<!-- {editor} -->\n```json\n")[1].split("```")[0]
    )
    return found


def nested(dotted: dict[str, Any]) -> dict[str, Any]:
    """Settings whose names have dots as the objects that Sublime Text makes of them."""
    whole: dict[str, Any] = {}
    for name, value in dotted.items():
        *path, last = name.split(".")
        inner = whole
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return whole


class Editor:
    """One open file, and how an editor changes it. Texts here are ASCII."""

    def __init__(self, settings: dict[str, Any], name: str) -> None:
        self.settings = settings
        self.params = json.loads((ROOT / f"tests/data/client_{name}.json").read_text())
        self.text = ""
        self.uri = ""
        self.client: LanguageClient | None = None

    @contextmanager
    def editing(self, server: Server, path: Path, text: str) -> Iterator[LanguageClient]:
        """Opens a file, whose folder is the workspace."""
        self.text, self.uri = text, path.as_uri()
        with LanguageClient(server.command, path.parent, self.params, self.answer) as client:
            if self.settings:
                client.notify("workspace/didChangeConfiguration", {"settings": self.changed})
            client.wait_ready()
            client.open(path, text)
            yield client

    def answer(self, method: str, params: Any) -> Any:
        """The result of a request from the server."""
        if method == "workspace/configuration":
            return [self.section(item.get("section", "")) for item in params["items"]]
        if method == "workspace/applyEdit":
            self.apply(params["edit"])
            return {"applied": True, "failureReason": ""}
        return None

    @property
    def changed(self) -> dict[str, Any]:
        """What the server is told of when settings change."""
        return self.settings

    def section(self, name: str) -> Any:
        """Settings by the name of a section."""
        value: Any = self.settings
        for part in filter(None, name.split(".")):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def apply(self, edit: dict[str, Any]) -> None:
        """Applies an edit of the workspace to the file."""
        changes = edit.get("changes", {}).get(self.uri, [])
        for one in edit.get("documentChanges", []):
            assert one["textDocument"] == {"uri": self.uri, "version": 1}
            changes = changes + one["edits"]
        for change in sorted(changes, key=lambda one: self.offset(one["range"]["start"]))[::-1]:
            self.replace(change["range"], change["newText"])

    def replace(self, span: dict[str, Any], new: str) -> None:
        """Puts a text in the place of a range."""
        start, end = self.offset(span["start"]), self.offset(span["end"])
        self.text = self.text[:start] + new + self.text[end:]

    def offset(self, place: dict[str, int]) -> int:
        """Index of a position in the text."""
        lines = self.text.splitlines(keepends=True)
        return sum(map(len, lines[: place["line"]])) + place["character"]

    def take_item(self, item: dict[str, Any], here: dict[str, int]) -> None:
        """Inserts an item of the completion menu."""
        raise NotImplementedError

    def choose(self, client: LanguageClient, action: dict[str, Any]) -> None:
        """Carries out a code action."""
        raise NotImplementedError


class Sublime(Editor):
    """Sublime Text with the package LSP."""

    def __init__(self, **changed: Any) -> None:
        (page,) = settings_of_the_page("sublime").values()
        assert page["command"] == ["redraft", "serve"]
        super().__init__(nested({**page["settings"], **changed}), "sublime")
        self.params["initializationOptions"] = page.get("initialization_options", {})

    def take_item(self, item: dict[str, Any], here: dict[str, int]) -> None:
        """Lines after the first are indented as the cursor's line is."""
        line = self.text.splitlines()[here["line"]]
        indentation = line[: len(line) - len(line.lstrip())]
        new = item["textEdit"]["newText"].replace("\n", "\n" + indentation)
        self.replace(item["textEdit"]["range"], new)

    def choose(self, client: LanguageClient, action: dict[str, Any]) -> None:
        """The edit is asked for."""
        self.apply(client.request("codeAction/resolve", action)["edit"])


class Kate(Editor):
    """Kate's plugin for language servers."""

    def __init__(self, **changed: Any) -> None:
        page = settings_of_the_page("kate")["servers"]["python"]
        assert page["command"] == ["redraft", "serve"]
        settings = page["settings"]
        settings["redraft"] |= nested(changed).get("redraft", {})
        super().__init__(settings, "kate")
        self.params["initializationOptions"] = page["initializationOptions"]

    def take_item(self, item: dict[str, Any], here: dict[str, int]) -> None:
        """The word before the cursor is replaced; of an item's edit only the text is read."""
        line = self.text.splitlines()[here["line"]]
        start = here["character"]
        while start and (line[start - 1].isalnum() or line[start - 1] == "_"):
            start -= 1
        new = item.get("insertText") or item["textEdit"]["newText"] or item["label"]
        self.replace({"start": {**here, "character": start}, "end": here}, new)

    def choose(self, client: LanguageClient, action: dict[str, Any]) -> None:
        """What an action has, an edit or a command, is carried out; nothing is asked for."""
        self.apply(action.get("edit", {}))
        command = action["command"]
        asked = {"command": command["command"], "arguments": command["arguments"]}
        client.request("workspace/executeCommand", asked)


class Kakoune(Editor):
    """Kakoune with kakoune-lsp."""

    def __init__(self, **changed: Any) -> None:
        page = (CLIENTS / "other-editors.md").read_text(encoding="utf-8")
        (server,) = tomllib.loads(page.split("lsp_servers %{\n")[1].split("    }\n")[0]).values()
        assert (server["command"], server["args"]) == ("redraft", ["serve"])
        assert server["settings_section"] == "redraft"
        settings = server["settings"]
        settings["redraft"] |= nested(changed).get("redraft", {})
        super().__init__(settings, "kakoune")
        self.params["initializationOptions"] = self.changed

    @property
    def changed(self) -> dict[str, Any]:
        """The section itself."""
        section: dict[str, Any] = self.settings["redraft"]
        return section

    def take_item(self, item: dict[str, Any], here: dict[str, int]) -> None:
        """The text goes where the word before the cursor stood. With another filter text it would
        be a snippet."""
        new, span = item["textEdit"]["newText"], item["textEdit"]["range"]
        assert item["filterText"] == new
        assert span["start"]["line"] == span["end"]["line"] == here["line"]
        self.replace({"start": span["start"], "end": here}, new)

    def choose(self, client: LanguageClient, action: dict[str, Any]) -> None:
        """The edit is asked for."""
        self.apply(client.request("codeAction/resolve", action)["edit"])


each = pytest.mark.parametrize("open_editor", [Sublime, Kate, Kakoune])


@each
def test_suggestion_is_taken_from_the_menu(
    open_editor: Callable[..., Editor], server: Server, project: Path
) -> None:
    place = prepared_place(server, project, "orders.py")
    lines = place.typed.split("\n")
    here = {"line": len(lines) - 1, "character": len(lines[-1])}
    editor = open_editor()
    with editor.editing(server, project / "orders.py", place.typed + place.after) as client:
        asked = {"textDocument": {"uri": editor.uri}, "position": here}
        items = client.request("textDocument/completion", {**asked, "context": {"triggerKind": 1}})
    editor.take_item(items["items"][0], here)
    assert editor.text.startswith(place.typed + place.first_line)
    assert editor.text.endswith(place.after)


@each
def test_instruction_comment_is_carried_out(
    open_editor: Callable[..., Editor], server: Server, project: Path
) -> None:
    edit, title = prepared_comment(server, project, "orders.py")
    editor = open_editor()
    line = {"line": edit.first - 1, "character": 0}
    asked = {"range": {"start": line, "end": line}, "context": {"diagnostics": []}}
    with editor.editing(server, project / "orders.py", edit.text) as client:
        actions = client.request(
            "textDocument/codeAction", {"textDocument": {"uri": editor.uri}, **asked}
        )
        (action,) = [one for one in actions if one["title"] == title]
        editor.choose(client, action)
    assert editor.text == edit.after


@each
def test_settings_of_the_editor_reach_the_server(
    open_editor: Callable[..., Editor], server: Server, project: Path
) -> None:
    editor = open_editor(**{"redraft.languages": {"python": False}})
    with editor.editing(server, project / "orders.py", "x = 1\n") as client:
        document = {"textDocument": {"uri": editor.uri}}
        wait_for(
            lambda: (
                "switched off for python" in client.request("redraft/status", document)["reason"]
            ),
            "setting",
        )
