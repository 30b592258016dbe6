"""A session of Neovim in a real terminal, recorded for the README as it happens."""

from __future__ import annotations

import os
from pathlib import Path, PurePath

import pytest
from drive_neovim import editor_environment, init_text
from drive_terminal import Terminal, save_animation, save_picture, save_recording
from installed import EDITORS_MODEL, Installed, Server
from next_edit_files import BASKET
from prepared import prepared_edit, prepared_place
from projects import ORDERS
from waiting import wait_for

pytestmark = pytest.mark.editors

LARGEST_ANIMATION_BYTES = 500_000
DEFAULT = "redraft-default-135m.gguf"

LOOKS = """
vim.o.termguicolors, vim.o.background, vim.o.laststatus = true, 'dark', 2
vim.o.statusline = " %f %m%=%{v:lua.require'redraft'.statusline()} "
vim.o.ruler, vim.o.number, vim.o.shortmess = false, true, vim.o.shortmess .. 'IF'
"""


def test_session_is_recorded(
    installed: Installed, server: Server, tmp_path: Path, project: Path, media: Path
) -> None:
    path = project / "orders.py"
    place = prepared_place(server, project, path.name)
    taken = place.typed + place.suggestion + place.after
    edit = prepared_edit(
        server, project, path.name, change=lambda text: taken if text == ORDERS else ""
    )
    path.write_text(place.text, encoding="utf-8")
    init = tmp_path / "init.lua"
    init.write_text(init_text(server, None) + LOOKS, encoding="utf-8")
    environment = {**os.environ, **editor_environment(tmp_path / "xdg")}
    command = [str(installed.neovim), "--clean", "-u", str(init), "orders.py"]
    terminal = Terminal(command, environment, project)
    try:
        terminal.wait_text("⚡ redraft")
        terminal.keys("GA")
        terminal.type(place.key, 0.3)
        terminal.wait_text(place.typed.splitlines()[-1] + place.first_line[:12])
        terminal.rest(1.2)
        terminal.keys("\t")
        terminal.rest(1.0)
        terminal.keys("\x1b")
        terminal.type(f"{edit.first}G", 0.2)
        terminal.type(f"V{edit.last}G", 0.15)
        terminal.type(":Redraft edit\r", 0.05)
        terminal.wait_text(f"Edit lines {edit.first} to {edit.last}")
        terminal.type(edit.instruction, 0.05)
        terminal.rest(0.5)
        terminal.keys("\r")
        terminal.wait_text(" change(s)")
        terminal.rest(1.5)
        terminal.keys("\x19")
        terminal.rest(1.0)
        terminal.type(":w\r", 0.1)
        wait_for(lambda: path.read_text(encoding="utf-8") != place.text, "written file")
        terminal.rest(0.5)
    finally:
        terminal.close()
    after = path.read_text(encoding="utf-8")
    assert after.splitlines()[: edit.last] != place.text.splitlines()[: edit.last]
    assert place.typed.splitlines()[-1] in after
    cast = media / "neovim.cast"
    save_recording(terminal, cast)
    save_animation(cast, media / "neovim.svg")
    assert (media / "neovim.svg").stat().st_size <= LARGEST_ANIMATION_BYTES


SHOP = """\
def area(width, height):
    return width * height


def total(prices):
    result = 0
    for price in prices:
        result += price
    return result
"""
RENAMED = SHOP.replace("prices", "amounts")
TYPED = ["", "", "class Box:", "def __init__(self, width, height):", "self.width = width"]
EXPECTED = "self.height = height"
WRITTEN = """

class Box:
    def __init__(self, width, height):
        self.width = width
        self.height = height
"""


@pytest.mark.skipif(
    PurePath(EDITORS_MODEL).name != DEFAULT, reason="the page shows the default model"
)
def test_the_first_look_is_recorded(
    installed: Installed, server: Server, tmp_path: Path, project: Path, media: Path
) -> None:
    """A rename is followed by Tab, then a whole line is proposed that is right."""
    path = project / "shop.py"
    path.write_text(SHOP, encoding="utf-8")
    init = tmp_path / "init.lua"
    init.write_text(init_text(server, None) + LOOKS, encoding="utf-8")
    environment = {**os.environ, **editor_environment(tmp_path / "xdg")}
    command = [str(installed.neovim), "--clean", "-u", str(init), path.name]
    terminal = Terminal(command, environment, project)
    try:
        terminal.wait_text("⚡ redraft")
        terminal.type("5G0f(l", 0.2)
        terminal.type("cwamounts\x1b", 0.12)
        terminal.wait_text("pricesamounts")
        terminal.rest(1.2)
        terminal.keys("\t")
        terminal.rest(1.0)
        terminal.keys("\t")
        terminal.wait_text("in amounts:")
        terminal.rest(1.2)
        terminal.type("Go", 0.2)
        terminal.type("\n".join(TYPED) + "\n", 0.05)
        terminal.wait_text(EXPECTED)
        terminal.rest(1.5)
        terminal.keys("\t")
        terminal.rest(0.8)
        terminal.type("\x1b:w\r", 0.1)
        wait_for(lambda: path.read_text(encoding="utf-8") != SHOP, "written file")
        terminal.rest(0.8)
    finally:
        terminal.close()
    assert path.read_text(encoding="utf-8") == RENAMED + WRITTEN
    cast = tmp_path / "first-look.cast"
    save_recording(terminal, cast)
    save_animation(cast, media / "first-look.svg", rows=18)
    assert (media / "first-look.svg").stat().st_size <= LARGEST_ANIMATION_BYTES


def test_next_edit_is_pictured(
    installed: Installed, server: Server, tmp_path: Path, project: Path, media: Path
) -> None:
    (project / "basket.py").write_text(BASKET, encoding="utf-8")
    init = tmp_path / "init.lua"
    init.write_text(init_text(server, None) + LOOKS, encoding="utf-8")
    environment = {**os.environ, **editor_environment(tmp_path / "xdg")}
    command = [str(installed.neovim), "--clean", "-u", str(init), "basket.py"]
    terminal = Terminal(command, environment, project)
    try:
        terminal.wait_text(" redraft")
        terminal.keys("4G0f(l")
        terminal.type("cwamounts\x1b")
        terminal.wait_text("pricesamounts")
        terminal.rest(0.5)
        save_picture(terminal, media / "neovim-next-edit.svg", rows=8)
    finally:
        terminal.close()
    picture = (media / "neovim-next-edit.svg").read_text(encoding="utf-8")
    assert picture.count("amounts") == 2
