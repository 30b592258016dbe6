"""A session of Neovim in a real terminal, recorded for the README as it happens."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from drive_neovim import editor_environment, init_text
from drive_terminal import Terminal, save_animation, save_recording
from installed import Installed, Server, wait_for
from projects import ORDERS, RENAME, TYPED_BEFORE, make_project

pytestmark = [pytest.mark.editors, pytest.mark.timeout(300)]

LARGEST_ANIMATION_BYTES = 500_000

LOOKS = """
vim.o.termguicolors, vim.o.background, vim.o.laststatus = true, 'dark', 2
vim.o.statusline = " %f %m%=%{v:lua.require'redraft'.statusline()} "
vim.o.ruler, vim.o.number, vim.o.shortmess = false, true, vim.o.shortmess .. 'IF'
"""


def test_session_is_recorded(
    installed: Installed, server: Server, tmp_path: Path, media: Path
) -> None:
    project = make_project(tmp_path / "project")
    shown_before = "\n".join(TYPED_BEFORE)
    (project / "orders.py").write_text(ORDERS + shown_before, encoding="utf-8")
    init = tmp_path / "init.lua"
    init.write_text(init_text(server, None) + LOOKS, encoding="utf-8")
    environment = {**os.environ, **editor_environment(tmp_path / "xdg")}
    command = [str(installed.neovim), "--clean", "-u", str(init), "orders.py"]
    terminal = Terminal(command, environment, project)
    try:
        terminal.wait_text("⚡ redraft")
        terminal.keys("GA")
        terminal.type("[", 0.3)
        terminal.wait_text("[order_total(")
        terminal.rest(1.2)
        terminal.keys("\t")
        terminal.rest(1.0)
        terminal.keys("\x1b")
        terminal.type("4G", 0.2)
        terminal.type("V5j", 0.15)
        terminal.type(":Redraft edit\r", 0.05)
        terminal.wait_text("Edit lines 4 to 9")
        terminal.type(RENAME, 0.05)
        terminal.rest(0.5)
        terminal.keys("\r")
        terminal.wait_text("2 change(s)")
        terminal.rest(1.5)
        terminal.keys("\x19")
        terminal.wait_text("order_total(items, tax)")
        terminal.rest(1.0)
        terminal.type(":w\r", 0.1)
        path = project / "orders.py"
        wait_for(lambda: "for price in items" in path.read_text(encoding="utf-8"), "written file")
        terminal.rest(0.5)
    finally:
        terminal.close()
    cast = media / "neovim.cast"
    save_recording(terminal, cast)
    save_animation(cast, media / "neovim.svg")
    assert (media / "neovim.svg").stat().st_size <= LARGEST_ANIMATION_BYTES
