"""Menus of completions over next edits: Neovim's own, nvim-cmp's and blink.cmp's."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from drive_neovim import Neovim, OpenNeovim
from installed import Installed
from next_edit_files import BASKET
from waiting import wait_for

pytestmark = pytest.mark.editors

TEXT = BASKET + "\n\nprivate_words = amounts_all, amounts_of_day\n"
SETUPS = {
    "native": """
vim.o.autocomplete, vim.o.complete, vim.o.completeopt = true, '.', 'menuone,noselect'
_G.is_open = function() return vim.fn.pumvisible() == 1 end
_G.ask, _G.choose, _G.confirm = '<C-n>', '<C-n>', '<C-y>'
""",
    "nvim-cmp": """
vim.opt.runtimepath:append('PLUGINS/nvim-cmp')
local cmp = require('cmp')
cmp.register_source('words', { complete = function(_, _, answer)
  _G.answer = function() answer({ { label = 'amounts_all' }, { label = 'amounts_of_day' } }) end
  if not _G.is_late then _G.answer() end
end })
cmp.setup({
  performance = { debounce = 0, throttle = 0 },
  sources = { { name = 'words' } },
  mapping = { ['<Tab>'] = cmp.mapping(function(fallback)
    if cmp.visible() then cmp.select_next_item() else fallback() end
  end, { 'i' }), ['<C-y>'] = cmp.mapping.confirm({ select = true }),
    ['<C-a>'] = cmp.mapping.complete() },
})
-- What it looks for twice it marks anew.
_G.is_open = function() return cmp.visible() and not cmp.core.filter.running end
_G.ask, _G.choose, _G.confirm = '<C-a>', '<Tab>', '<C-y>'
""",
    "blink.cmp": """
vim.opt.runtimepath:append('PLUGINS/blink.cmp')
local blink = require('blink.cmp')
blink.setup({
  fuzzy = { implementation = 'lua' },
  sources = { default = { 'buffer' } },
  keymap = {
    preset = 'none', ['<Tab>'] = { 'select_next', 'fallback' }, ['<C-y>'] = { 'select_and_accept' },
    ['<C-a>'] = { 'show' },
  },
})
_G.is_open = blink.is_menu_visible
_G.ask, _G.choose, _G.confirm = '<C-a>', '<Tab>', '<C-y>'
""",
}
LONGER_THAN_A_WHOLE_NAME_RESTS_S = 0.8
ANSWERS = """
_G.answers = 0
vim.api.nvim_create_autocmd('LspRequest', { callback = function(event)
  local request = event.data.request
  local is_answer = request.method == 'redraft/nextEdit' and request.type == 'complete'
  _G.answers = _G.answers + (is_answer and 1 or 0)
end })
"""


@pytest.fixture(params=["0.12"])
def version(request: pytest.FixtureRequest) -> str:
    """The one that opens a menu of its own while somebody types."""
    return str(request.param)


@pytest.fixture(params=SETUPS)
def editor(
    request: pytest.FixtureRequest, neovim: OpenNeovim, installed: Installed, project: Path
) -> Neovim:
    """A file with words for a menu, in insert mode where a parameter's name was deleted."""
    plugins = installed.folder / "plugins"
    if request.param != "native" and not (plugins / request.param).is_dir():
        pytest.skip(f"{request.param} is not there")
    menu = SETUPS[request.param].replace("PLUGINS", str(plugins))
    path = project / "basket.py"
    path.write_text(TEXT, encoding="utf-8")
    editor = neovim(f"{menu}\n{ANSWERS}\nrequire('redraft').setup({{ cmd = COMMAND }})")
    editor.open(path)
    editor.lua("require('redraft.inline').visible = function() return false end")
    editor.keys("4G0f(lcw")
    wait_for(lambda: editor.rpc.api.get_mode()["mode"].startswith("i"), "insert mode")
    return editor


def is_open(editor: Neovim) -> bool:
    """Whether a menu is on the screen."""
    return bool(editor.lua("return _G.is_open()"))


def proposed(editor: Neovim) -> list[tuple[int, str]]:
    """Rows and texts of next edits on the screen."""
    return [(row, text) for row, _, text in editor.marks("redraft.added")]


def press(editor: Neovim, key: str) -> None:
    """Press the menu's key to ``ask`` for it, to ``choose`` or to ``confirm``."""
    editor.keys(editor.lua(f"return _G.{key}"))


def type_half_a_name_elsewhere(editor: Neovim) -> None:
    """Below all else, with the menu over it."""
    answers = editor.lua("return _G.answers")
    editor.keys("<Esc>Gox = ")
    wait_for(lambda: editor.lines[-1] == "x = ", "another line")
    for piece in ("am", "oun"):
        editor.type(piece)
        wait_for(lambda: is_open(editor), "menu of half a name")
    wait_for(lambda: editor.lua("return _G.answers") > answers, "next edits beside it")


def test_a_menu_over_a_whole_name_is_closed_and_tab_is_ours(editor: Neovim) -> None:
    editor.type("amo")
    wait_for(lambda: proposed(editor) == [(4, "amo")], "next edit of a whole name")
    assert not is_open(editor)
    editor.type("u")
    wait_for(lambda: is_open(editor), "menu")
    assert not proposed(editor)
    wait_for(lambda: proposed(editor) == [(4, "amou")], "next edit")
    assert not is_open(editor)
    editor.keys("<Tab><Tab>")
    wait_for(lambda: editor.lines[4] == "    kept = amou", "taken next edit")


@pytest.mark.parametrize("editor", ["nvim-cmp"], indirect=True)
def test_a_menu_that_comes_late_is_closed_too(editor: Neovim) -> None:
    editor.lua("""_G.is_late, _G.opened = true, 0
      require('cmp').event:on('menu_opened', function() _G.opened = _G.opened + 1 end)""")
    editor.type("amo")
    wait_for(lambda: proposed(editor) == [(4, "amo")], "next edit")
    editor.lua("_G.answer()")
    wait_for(lambda: editor.lua("return _G.opened") and not is_open(editor), "closed menu")
    wait_for(lambda: proposed(editor) == [(4, "amo")], "next edit")


def test_a_menu_in_which_somebody_chose_stays_and_its_name_is_followed(editor: Neovim) -> None:
    editor.type("am")
    wait_for(lambda: is_open(editor), "menu")
    editor.type("o")
    wait_for(lambda: "total(amo," in editor.lines[3] and is_open(editor), "menu of the name")
    press(editor, "choose")
    wait_for(lambda: "amounts_" in editor.lines[3], "chosen name")
    answers = editor.lua("return _G.answers")
    wait_for(lambda: editor.lua("return _G.answers") > answers, "next edits for it")
    assert is_open(editor)
    assert not proposed(editor)
    press(editor, "confirm")
    name = editor.lines[3].split("(")[1].split(",")[0]
    assert name in ("amounts_all", "amounts_of_day")
    wait_for(lambda: proposed(editor) == [(4, name)], "next edit of the name")
    editor.keys("<Tab><Tab>")
    wait_for(lambda: proposed(editor) == [(5, name)], "the next one")
    editor.keys("<Tab><Tab>")
    wait_for(lambda: f"sum({name})" in editor.lines[5], "the whole chain")


def test_a_menu_over_a_whole_name_elsewhere_is_closed_unless_it_was_asked_for(
    editor: Neovim,
) -> None:
    editor.type("amounts")
    wait_for(lambda: proposed(editor) == [(4, "amounts")], "next edit")
    type_half_a_name_elsewhere(editor)
    time.sleep(LONGER_THAN_A_WHOLE_NAME_RESTS_S)
    assert is_open(editor)
    assert not proposed(editor)
    editor.type("ts")
    wait_for(lambda: proposed(editor) == [(4, "amounts")], "next edit beside the whole name")
    assert not is_open(editor)
    press(editor, "ask")
    wait_for(lambda: is_open(editor), "menu by the user's key")
    time.sleep(LONGER_THAN_A_WHOLE_NAME_RESTS_S)
    assert is_open(editor)
    assert not proposed(editor)


def test_a_menu_with_a_chosen_whole_name_elsewhere_stays(editor: Neovim) -> None:
    editor.type("amounts")
    wait_for(lambda: proposed(editor) == [(4, "amounts")], "next edit")
    type_half_a_name_elsewhere(editor)
    press(editor, "choose")
    wait_for(lambda: "amounts_" in editor.lines[-1], "chosen name")
    time.sleep(LONGER_THAN_A_WHOLE_NAME_RESTS_S)
    assert is_open(editor)
    assert not proposed(editor)
    press(editor, "confirm")
    wait_for(lambda: proposed(editor) == [(4, "amounts")], "next edit behind the menu")


def test_a_name_from_the_menu_begins_a_chain_anew(editor: Neovim) -> None:
    editor.type("amo")
    wait_for(lambda: proposed(editor) == [(4, "amo")], "next edit")
    editor.keys("<Tab><Tab>")
    wait_for(lambda: proposed(editor) == [(5, "amo")], "the next one")
    editor.keys("<Esc>4G0f(ea")
    wait_for(lambda: editor.rpc.current.window.cursor == (4, len("def total(amo")), "cursor")
    editor.type("u")
    wait_for(lambda: is_open(editor), "menu")
    press(editor, "choose")
    press(editor, "confirm")
    wait_for(lambda: "total(amounts_" in editor.lines[3], "chosen name")
    name = editor.lines[3].split("(")[1].split(",")[0]
    wait_for(lambda: proposed(editor) == [(4, name)], "next edit of the name")
    editor.keys("<Tab><Tab>")
    wait_for(lambda: proposed(editor) == [(5, name)], "the next one")
    editor.keys("<Tab><Tab>")
    wait_for(lambda: editor.lines[5] == f"    return sum({name}) * (1 + tax)", "the whole chain")
