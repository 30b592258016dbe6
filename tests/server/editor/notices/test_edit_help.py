"""What the user is told and offered where the model did not make an edit."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lsp_server.editor.notices import first_start
from lsp_server.editor.notices.first_start import FETCH_AND_USE, NOT_NOW, USE, EditHelp
from lsp_server.editor.protocol.client_features import ClientFeatures
from lsp_server.models.better_editor import BetterEditor
from lsp_server.models.card import Speed
from lsp_server.models.choices import read_choices
from lsp_server.models.fetched import models_folder
from lsp_server.models.manifest import read_manifest

MODEL = replace(
    next(one for one in read_manifest() if one.name == "qwen2.5-coder-1.5b-instruct"),
    speed=Speed(1.0, 20.0, measured=False),
)


class Editor:
    """Its user presses one button."""

    def __init__(self, button: str, *, has_buttons: bool = True) -> None:
        self.button, self.asked, self.changed = button, list[Any](), 0
        self.shown: list[str] = []
        self.protocol: Any = self
        self.features = ClientFeatures(message_buttons=has_buttons)
        self.hub = SimpleNamespace(choices_changed=self.count, set_fetching=lambda what: None)

    def count(self) -> None:
        self.changed += 1

    async def ask(self, method: str, params: Any) -> Any:
        if method == "window/showMessageRequest":
            self.asked.append(params)
            return {"title": self.button}
        return None

    def tell(self, method: str, params: Any) -> None: ...

    def show_warning(self, message: str) -> None:
        self.shown.append(message)


@pytest.fixture(autouse=True)
def home(bare_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    async def fetched(name: str, report: Any) -> Path:
        assert name == MODEL.name
        return bare_home / "fetched.gguf"

    monkeypatch.setattr(first_start, "fetch_in_process", fetched)
    return bare_home


def helped(
    editor: Editor, monkeypatch: pytest.MonkeyPatch, better: BetterEditor | None, times: int = 1
) -> list[str]:
    monkeypatch.setattr(first_start, "better_editor", lambda model: better)

    async def run() -> list[str]:
        helper = EditHelp(editor)  # type: ignore[arg-type]
        told = []
        for _ in range(times):
            told.append(await helper("default.gguf"))
            while [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]:
                await asyncio.sleep(0)
        return told

    return asyncio.run(run())


def test_one_button_fetches_and_chooses_it(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    editor, better = Editor(FETCH_AND_USE), BetterEditor(MODEL, is_here=False)
    told = helped(editor, monkeypatch, better, times=3)
    assert told == ["", better.advice, better.advice], "it is offered once, then named"
    (question,) = editor.asked
    assert question["message"] == f"Redraft: {better.reason}."
    assert [one["title"] for one in question["actions"]] == [FETCH_AND_USE, NOT_NOW]
    assert (read_choices().edits, editor.changed) == (str(home / "fetched.gguf"), 1)
    assert read_choices().completion == ""


def test_one_that_is_here_is_chosen_by_one_button(monkeypatch: pytest.MonkeyPatch) -> None:
    editor = Editor(USE)
    helped(editor, monkeypatch, BetterEditor(MODEL, is_here=True))
    assert [one["title"] for one in editor.asked[0]["actions"]] == [USE, NOT_NOW]
    assert (read_choices().edits, editor.changed) == (str(models_folder() / MODEL.file), 1)


def test_nothing_happens_unless_the_button_is_pressed(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_here in (False, True):
        editor = Editor(NOT_NOW)
        helped(editor, monkeypatch, BetterEditor(MODEL, is_here=is_here))
        assert (len(editor.asked), read_choices().edits, editor.changed) == (1, "", 0)


def test_an_editor_without_buttons_is_told_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    editor, better = Editor("", has_buttons=False), BetterEditor(MODEL, is_here=False)
    assert helped(editor, monkeypatch, better, times=2) == [better.advice] * 2
    assert editor.asked == []
    assert helped(editor, monkeypatch, None) == [""]
