"""Helix, which knows neither inline completion nor our commands: the menu and code actions do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drive_terminal import Terminal
from installed import CLIENTS, Installed, Server
from prepared import prepared_comment, prepared_place
from waiting import wait_for

pytestmark = pytest.mark.editors

OpenHelix = Callable[[str], Terminal]


def settings_of_the_page() -> str:
    """The settings that other-editors.md gives for Helix."""
    page = (CLIENTS / "other-editors.md").read_text(encoding="utf-8")
    return page.split("<!-- helix -->\n```toml\n")[1].split("```")[0]


@pytest.fixture
def helix(
    installed: Installed, server: Server, tmp_path: Path, project: Path
) -> Iterator[OpenHelix]:
    """Opens orders.py with a text, with the settings of the page, the command's path apart."""
    folder = tmp_path / "config/helix"
    folder.mkdir(parents=True)
    settings = settings_of_the_page()
    assert 'command = "redraft"' in settings
    settings = settings.replace('command = "redraft"', f'command = "{server.command}"')
    (folder / "languages.toml").write_text(settings, encoding="utf-8")
    # A bracket that Helix closes by itself would make another place of the prepared one.
    (folder / "config.toml").write_text("[editor]\nauto-pairs = false\n", encoding="utf-8")
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "HELIX_RUNTIME": str(installed.folder / "helix/usr/lib/hx/runtime"),
    }
    started: list[Terminal] = []

    def start(text: str) -> Terminal:
        (project / "orders.py").write_text(text, encoding="utf-8")
        terminal = Terminal([str(installed.helix), "orders.py"], environment, project)
        started.append(terminal)
        terminal.wait_text(text.splitlines()[0])
        return terminal

    yield start
    for terminal in started:
        terminal.close()


def saved(terminal: Terminal, path: Path, before: str) -> str:
    """Write the file and wait until it is another one."""
    terminal.keys("\x1b")
    terminal.type(":w\r")
    return wait_for(lambda: (now := path.read_text(encoding="utf-8")) != before and now, "new text")


def test_suggestion_is_taken_from_the_menu(helix: OpenHelix, project: Path, server: Server) -> None:
    place = prepared_place(server, project, "orders.py")
    wanted = place.first_line[:12].strip()
    editor = helix(place.text)
    editor.keys("ge")
    editor.keys("A")
    editor.type(place.key)
    editor.rest(0.3)
    before = editor.text.count(wanted)

    def offered() -> bool:
        """A menu that is open already, with words of the file, asks the server for nothing."""
        editor.keys("\x1b")
        editor.rest(0.3)
        editor.keys("A")
        editor.keys("\x18")
        return editor.soon(lambda: editor.text.count(wanted) > before)

    editor.wait(offered, "completion menu")
    editor.keys("\t")
    editor.keys("\r")
    editor.rest(0.5)
    text = saved(editor, project / "orders.py", place.text)
    assert text.startswith(place.typed + place.first_line[:12].rstrip())
    editor.type("u")
    undone = saved(editor, project / "orders.py", text)
    assert undone.rstrip("\n") in (place.text.rstrip("\n"), place.typed.rstrip("\n"))


def test_instruction_comment_is_carried_out(
    helix: OpenHelix, project: Path, server: Server
) -> None:
    edit, title = prepared_comment(server, project, "orders.py")
    editor = helix(edit.text)
    editor.type(f"{edit.first}gg")

    def offered() -> bool:
        editor.keys("\x1b")
        editor.keys(" a")
        return editor.soon(lambda: title in editor.text)

    editor.wait(offered, "code action")
    editor.keys("\r")

    def carried_out() -> bool:
        editor.rest(0.5)
        return edit.comment not in editor.text

    editor.wait(carried_out, "text without the comment")
    assert saved(editor, project / "orders.py", edit.text) == edit.after
    editor.type("u")
    assert saved(editor, project / "orders.py", edit.after) == edit.text
