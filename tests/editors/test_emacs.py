"""Emacs with eglot and with lsp-mode: the menu and code actions, and no plugin of ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from drive_terminal import Terminal
from installed import CLIENTS, Installed, Server
from prepared import prepared_comment, prepared_place
from waiting import wait_for

pytestmark = pytest.mark.editors

OpenEmacs = Callable[[str], Terminal]

QUIET = """
(setq inhibit-startup-screen t make-backup-files nil auto-save-default nil
      native-comp-jit-compilation nil native-comp-enable-subr-trampolines nil)
"""
LSP_MODE = """
(let ((default-directory "{packages}")) (normal-top-level-add-subdirs-to-load-path))
(load "lsp-mode-autoloads" nil t)
(require 'lsp-mode)
(setq lsp-auto-guess-root t lsp-auto-execute-action nil)
"""
"""What lsp-mode would ask at its first start is answered."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client of Emacs: settings before those of the page, a text of its mode line once the server
    answers, and the command that offers code actions, with what it asks."""

    name: str
    before: str
    ready: str
    actions: str
    question: str


EGLOT = Client("emacs", "", "eglot:project", "eglot-code-actions", "[eglot]")
LSP = Client("lsp-mode", LSP_MODE, "LSP[redraft", "lsp-execute-code-action", "Select")


def settings_of_the_page(name: str) -> str:
    """The settings that other-editors.md gives for a client."""
    page = (CLIENTS / "other-editors.md").read_text(encoding="utf-8")
    return page.split(f"<!-- {name} -->\n```elisp\n")[1].split("```")[0]


@pytest.fixture(params=[EGLOT, LSP], ids=["eglot", "lsp-mode"])
def client(request: pytest.FixtureRequest) -> Client:
    assert isinstance(request.param, Client)
    return request.param


@pytest.fixture
def emacs(
    client: Client, installed: Installed, server: Server, tmp_path: Path, project: Path
) -> Iterator[OpenEmacs]:
    """Opens orders.py with a text, with the settings of the page and the server on PATH."""
    init = tmp_path / "init.el"
    packages = installed.folder / "emacs/usr/share/emacs/site-lisp/elpa-src"
    before = client.before.replace("{packages}", str(packages))
    init.write_text(QUIET + before + settings_of_the_page(client.name), encoding="utf-8")
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{server.command.parent}:{os.environ['PATH']}",
    }
    command = [str(installed.emacs), "-nw", "-Q", "-l", str(init), "orders.py"]
    started: list[Terminal] = []

    def start(text: str) -> Terminal:
        (project / "orders.py").write_text(text, encoding="utf-8")
        terminal = Terminal(command, environment, project)
        started.append(terminal)
        terminal.wait_text(text.splitlines()[0])
        terminal.wait_text(client.ready)
        return terminal

    yield start
    for terminal in started:
        terminal.close()


def saved(terminal: Terminal, path: Path, before: str) -> str:
    """Write the file and wait until it is another one."""
    terminal.keys("\x18\x13")
    return wait_for(lambda: (now := path.read_text(encoding="utf-8")) != before and now, "new text")


def test_suggestion_is_taken_by_completion(emacs: OpenEmacs, project: Path, server: Server) -> None:
    place = prepared_place(server, project, "orders.py")
    wanted = place.typed.splitlines()[-1] + place.first_line[:12].rstrip()
    editor = emacs(place.text)
    editor.keys("\x1b>\x02")
    editor.type(place.key)
    editor.rest(0.3)
    before = editor.text.count(wanted)

    def taken() -> bool:
        editor.keys("\x1b\t")
        return editor.soon(lambda: editor.text.count(wanted) > before)

    editor.wait(taken, "completion")
    text = saved(editor, project / "orders.py", place.text)
    assert text.startswith(place.typed + place.first_line[:12].rstrip())
    editor.keys("\x1f")
    assert saved(editor, project / "orders.py", text).rstrip("\n") == place.typed.rstrip("\n")


def test_instruction_comment_is_carried_out(
    emacs: OpenEmacs, client: Client, project: Path, server: Server
) -> None:
    edit, title = prepared_comment(server, project, "orders.py")
    editor = emacs(edit.text)

    def offered() -> bool:
        """What is typed while a client starts may be lost, and the answer takes its time."""
        editor.keys("\x07")
        editor.rest(1.0)  # what comes at once behind it is dropped
        editor.keys(f"\x1bg\x1bg{edit.first}\r\x1bx{client.actions}\r")
        return editor.soon(lambda: client.question in editor.text, 30)

    editor.wait(offered, "question which code action")
    editor.type(title)
    editor.keys("\r")

    def carried_out() -> bool:
        editor.rest(0.5)
        return edit.comment not in editor.text

    editor.wait(carried_out, "text without the comment")
    assert saved(editor, project / "orders.py", edit.text) == edit.after
    editor.keys("\x1f")
    assert saved(editor, project / "orders.py", edit.after) == edit.text
