"""Kate with its own plugin for language servers: the completion menu and code actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from drive_kate import Kate
from installed import CLIENTS, Server
from prepared import prepared_comment, prepared_place
from waiting import wait_for

pytestmark = pytest.mark.editors

OpenKate = Callable[[str], Kate]


def settings_of_the_page() -> str:
    """The settings that other-editors.md gives for Kate."""
    page = (CLIENTS / "other-editors.md").read_text(encoding="utf-8")
    return page.split("<!-- kate -->\n```json\n")[1].split("```")[0]


@pytest.fixture
def kate(server: Server, tmp_path: Path, project: Path) -> Iterator[OpenKate]:
    """Opens orders.py with a text, with the settings of the page and the server on PATH."""
    started: list[Kate] = []

    def start(text: str) -> Kate:
        file = project / "orders.py"
        file.write_text(text, encoding="utf-8")
        folder = tmp_path / f"kate{len(started)}"
        folder.mkdir()
        started.append(Kate(server, folder, settings_of_the_page(), file))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_suggestion_is_taken_from_the_menu(kate: OpenKate, project: Path, server: Server) -> None:
    place = prepared_place(server, project, "orders.py")
    wanted = place.typed + place.first_line
    editor = kate(place.text)
    editor.keys("ctrl+End", "Left")
    editor.type(place.key)

    def taken() -> bool:
        """The menu is drawn a moment after the answer: a key that came too soon is taken back."""
        before = len(editor.answers("textDocument/completion"))
        editor.keys("ctrl+space")
        with suppress(AssertionError):
            wait_for(lambda: len(editor.answers("textDocument/completion")) > before, "answer", 5)
        editor.keys("Return")
        editor.save()
        if (project / "orders.py").read_text(encoding="utf-8").startswith(wanted):
            return True
        editor.keys("Escape", "ctrl+z")
        return False

    wait_for(taken, "suggestion in the file")


def test_instruction_comment_is_carried_out(kate: OpenKate, project: Path, server: Server) -> None:
    edit, title = prepared_comment(server, project, "orders.py")
    editor = kate(edit.text)
    editor.go_to_line(edit.first)
    editor.keys(*["Right"] * 4)

    def applied() -> bool:
        """The menu's entries come a moment after the answer; Kate takes what comes within 2 s."""
        before = len(editor.answers("textDocument/codeAction"))
        edits = len(editor.answers("workspace/applyEdit"))
        editor.keys("alt+l", "c")
        with suppress(AssertionError):
            wait_for(lambda: len(editor.answers("textDocument/codeAction")) > before, "answer", 5)
            titles = [one["title"] for one in editor.answers("textDocument/codeAction")[-1]]
            editor.keys(*["Down"] * (titles.index(title) + 1), "Return")
            wait_for(lambda: len(editor.answers("workspace/applyEdit")) > edits, "edit", 5)
            return bool(editor.answers("workspace/applyEdit")[-1]["applied"])
        editor.keys("Escape", "Escape", "Escape")
        return False

    wait_for(applied, "applied edit")
    editor.save()
    assert (project / "orders.py").read_text(encoding="utf-8") == edit.after
