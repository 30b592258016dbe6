"""Changes that a person begins by hand and carries to their end by Tab alone: in VS Code and Neovim
with the settings that they are installed with, by no other key, to the file that is wanted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser
from code_server import CodeServer
from drive_neovim import Neovim
from drive_vscode import Window
from installed import Installed, Server
from next_edit_cases import NextEditCase, next_edit_cases, read_cases
from projects import make_project
from tabs import carry_on_by_tabs
from typed_changes import FILES, typed_changes
from vscode_settings import AS_INSTALLED
from waiting import wait_for

from repo_index.common_ends import common_ends

pytestmark = pytest.mark.editors

CHANGES = {one.name: one for one in typed_changes()}
OTHERS = os.environ.get("REDRAFT_CHANGES")
FRESH = read_cases(Path(OTHERS)) if OTHERS else next_edit_cases("fresh")
KEY_S = 0.035
"""Between two keys."""

# Keys of suggestions are the user's to name: Tab, as the plugin's own page has it.
NEOVIM_SETUP = """
vim.api.nvim_create_autocmd('FileType', { command = 'setlocal indentkeys&' })
require('redraft').setup({ cmd = COMMAND, keymaps = { accept = '<Tab>' } })
"""

on_each = pytest.mark.parametrize("name", CHANGES)


# Neovim


@pytest.fixture(scope="module", params=["0.12 normal", "0.12 insert", "0.10 insert"])
def neovim_in_mode(
    request: pytest.FixtureRequest,
    installed: Installed,
    server: Server,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Neovim, str]]:
    """One Neovim that draws ghost text itself, one for which the plugin does. In normal mode there
    is none."""
    version, mode = request.param.split()
    folder = tmp_path_factory.mktemp("typing") / "neovim"
    editor = Neovim(installed.neovim_of(version), folder, server, NEOVIM_SETUP)
    yield editor, mode
    editor.close()


def _neovim_screen(editor: Neovim) -> tuple[Any, Any]:
    new, old = editor.marks("redraft.added"), editor.marks("redraft.hunks")
    hints = [mark for mark in editor.marks("redraft.next_edit") if mark[2]]
    shown = (new, old, hints, editor.ghost())
    return any(shown) and shown, (editor.lines, editor.rpc.current.window.cursor)


@on_each
def test_tab_alone_carries_a_change_to_its_end_in_neovim(
    neovim_in_mode: tuple[Neovim, str], tmp_path: Path, name: str
) -> None:
    (editor, mode), change = neovim_in_mode, CHANGES[name]
    path = make_project(tmp_path / "project") / change.file
    path.write_text(change.before, encoding="utf-8")
    editor.open(path)
    for typing in change.typings:
        editor.keys("<Esc>")
        wait_for(lambda: editor.rpc.api.get_mode()["mode"] == "n", "normal mode")
        byte = len(change.before.splitlines()[typing.line - 1][: typing.column - 1].encode())
        editor.lua("vim.api.nvim_win_set_cursor(0, { ... })", typing.line, byte)
        at_end = byte == len(editor.lines[typing.line - 1].encode())
        editor.keys(f"c{typing.length}l" if typing.length else "a" if at_end else "i")
        for character in typing.text:
            editor.type(character)
            time.sleep(KEY_S)
        if mode == "normal":
            editor.keys("<Esc>")
        # A person looks at what was typed before going on elsewhere.
        time.sleep(0.6)
    carry_on_by_tabs(lambda: _neovim_screen(editor), lambda: editor.keys("<Tab>"))
    text = editor.text + "\n"
    editor.keys("<Esc>")
    editor.rpc.command("bwipeout!")
    assert text == change.wanted


@pytest.mark.parametrize("case", FRESH, ids=str)
def test_a_fresh_change_breaks_nothing_in_neovim(
    neovim_in_mode: tuple[Neovim, str], tmp_path: Path, case: NextEditCase
) -> None:
    editor, mode = neovim_in_mode
    project = make_project(tmp_path / "project")
    for path, text in case.before.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text, encoding="utf-8")
    editor.open(project / case.path)
    for line, old, new in case.edits:
        head, tail = common_ends(old, new)
        editor.keys("<Esc>")
        wait_for(lambda: editor.rpc.api.get_mode()["mode"] == "n", "normal mode")
        byte = len(editor.lines[line][: editor.lines[line].index(old) + head].encode())
        editor.lua("vim.api.nvim_win_set_cursor(0, { ... })", line + 1, byte)
        length = len(old) - head - tail
        at_end = byte == len(editor.lines[line].encode())
        editor.keys(f"c{length}l" if length else "a" if at_end else "i")
        for character in new[head : len(new) - tail]:
            if character == "\n":
                # Without the indent that Neovim adds.
                editor.keys("<CR>0<C-d>")
            else:
                editor.type(character)
            time.sleep(KEY_S)
        if mode == "normal":
            editor.keys("<Esc>")
        time.sleep(0.6)
    carry_on_by_tabs(lambda: _neovim_screen(editor), lambda: editor.keys("<Tab>"))
    editor.keys("<Esc>")
    after = {}
    for path in case.before:
        number = editor.rpc.funcs.bufnr(str(project / path))
        loaded = number > 0 and editor.rpc.api.buf_is_loaded(number)
        lines = editor.rpc.api.buf_get_lines(number, 0, -1, False) if loaded else None
        after[path] = "".join(f"{line}\n" for line in lines) if lines else case.before[path]
        if loaded:
            editor.rpc.command(f"bwipeout! {number}")
    assert (case.outcome(after), after) == ("complete", case.wanted)


# VS Code


@pytest.fixture(scope="module")
def window_as_installed(
    installed: Installed, server: Server, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Window]:
    """A window with the settings that VS Code has when it was just installed."""
    started = CodeServer(installed, server, tmp_path_factory.mktemp("as-installed"), **AS_INSTALLED)
    folder = make_project(tmp_path_factory.mktemp("typing") / "project")
    for name in FILES.values():
        (folder / name).touch()
    yield Window(started, browser, folder)
    started.close()


def _carry_on_in_vscode(window: Window) -> None:
    """Press Tab as long as something is shown."""

    def look() -> tuple[Any, Any]:
        window.page.wait_for_timeout(40)
        return _vscode_screen(window)

    carry_on_by_tabs(look, lambda: window.keys("Tab"))


def _vscode_screen(window: Window) -> tuple[Any, Any]:
    shown = (window.next_edit(), window.struck_out(), window.ghost())
    return any(shown) and shown, (window.lines(), window.cursor())


@on_each
def test_tab_alone_carries_a_change_to_its_end_in_vscode(
    window_as_installed: Window, tmp_path: Path, name: str, failed: Callable[[], bool]
) -> None:
    window, change = window_as_installed, CHANGES[name]
    (window.folder / change.file).write_text(change.before, encoding="utf-8")
    window.open(change.file)
    window.wait(lambda: any(window.lines()), "text of the file")
    for typing in change.typings:
        window.go_to_line(typing.line)
        window.keys(*["ArrowRight"] * (typing.column - 1))
        window.keys(*["Shift+ArrowRight"] * typing.length)
        window.type(typing.text)
        window.page.wait_for_timeout(600)

    try:
        _carry_on_in_vscode(window)
        text = window.saved(change.file).decode()
        if text != change.wanted:
            window.picture(tmp_path / "other.png")
    finally:
        window.close_editors()
    assert text == change.wanted


@pytest.mark.parametrize("case", FRESH, ids=str)
def test_a_fresh_change_breaks_nothing_in_vscode(
    window_as_installed: Window, case: NextEditCase
) -> None:
    window = window_as_installed
    for path, text in case.before.items():
        (window.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (window.folder / path).write_text(text, encoding="utf-8")
    window.open_path(case.path)
    window.focus()
    window.wait(lambda: any(window.lines()), "text of the file")
    lines = case.before[case.path].split("\n")
    for line, old, new in case.edits:
        # As a person wraps: VS Code closes brackets that are opened before a dot.
        head, tail = (0, len(old)) if new.endswith(old) else common_ends(old, new)
        column = lines[line].index(old) + head
        window.go_to_line(line + 1)
        window.keys(*["ArrowRight"] * column)
        replaced = len(old) - head - tail
        window.keys(*["Shift+ArrowRight"] * replaced, *["Delete"][: 1 if replaced else 0])
        for number, piece in enumerate(new[head : len(new) - tail].split("\n")):
            # Without the indent that the editor adds.
            window.keys(*["Enter", "Shift+Home"][: 2 if number else 0])
            window.type(piece)
        lines[line] = lines[line].replace(old, new, 1)
        lines = "\n".join(lines).split("\n")
        window.page.wait_for_timeout(600)

    try:
        _carry_on_in_vscode(window)
        window.command("File: Save All Files")
        window.wait(lambda: not window.page.locator(".tab.dirty").count(), "saved files")
        after = {path: (window.folder / path).read_text("utf-8") for path in case.before}
    finally:
        window.close_editors()
        for path in case.before:
            (window.folder / path).unlink()
    assert (case.outcome(after), after) == ("complete", case.wanted)
