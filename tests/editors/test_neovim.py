"""Neovim with the plugin against the real server: what the fingers do and what the screen shows."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from drive_neovim import Neovim, OpenNeovim
from installed import EDITORS_MODEL, Server
from prepared import Place, in_windows_form, prepared_place
from projects import SHAPES
from small_model import SMALL_MODEL
from waiting import wait_for

pytestmark = pytest.mark.editors


def suggested(editor: Neovim, server: Server, project: Path) -> str:
    """Opens a file, types the start of a line whose rest the model knows, and waits for it."""
    begun(editor, server, project)
    return editor.wait_ghost()


def begun(editor: Neovim, server: Server, project: Path, least: int = 1) -> None:
    """Opens a file, and types the start of a line at which the model has so many suggestions."""
    path = project / "orders.py"
    place = prepared_place(server, project, path.name, least=least)
    path.write_text(place.text, encoding="utf-8")
    editor.open(path)
    type_at(editor, place)


def type_at(editor: Neovim, place: Place) -> None:
    """Type the key of a place at the end of its file."""
    editor.keys("GA")
    editor.type(place.key)


def test_suggestion_is_taken_whole(neovim: OpenNeovim, project: Path, server: Server) -> None:
    editor = neovim()
    ghost = suggested(editor, server, project)
    before = editor.text
    editor.keys("<Tab>")
    wait_for(lambda: editor.text.startswith(before + ghost), "accepted suggestion")
    editor.keys("<Esc>u")
    wait_for(lambda: editor.text == before, "undo of the suggestion alone")


def test_typing_what_is_suggested_keeps_the_rest(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    editor = neovim()
    ghost = suggested(editor, server, project)
    for count in range(1, 4):
        editor.type(ghost[count - 1])
        rest = ghost[count:]
        wait_for(lambda rest=rest: editor.ghost().startswith(rest), "rest of the suggestion")
    editor.keys("0x")
    wait_for(lambda: not editor.ghost().startswith(ghost[3:]), "another suggestion or none")


def test_a_key_right_behind_typed_ones_takes_what_is_left_of_a_suggestion(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    editor = neovim()
    ghost = suggested(editor, server, project)
    before = editor.text
    editor.keys(ghost[:2].replace("<", "<lt>") + "<Tab>")
    wait_for(lambda: editor.text == before + ghost, "all of it, once")
    editor.keys("<Esc>u")
    wait_for(lambda: editor.text == before + ghost[:2], "undo of the rest")
    editor.keys("u")
    wait_for(lambda: editor.text != before + ghost[:2], "undo of what was typed")


def test_a_key_right_behind_something_else_takes_nothing(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    editor = neovim()
    suggested(editor, server, project)
    before = editor.text
    editor.keys("9<Tab>!")
    wait_for(lambda: editor.text.endswith("!"), "typed text")
    line = before.split("\n")[-1]
    assert editor.lines[-1] in (line + "9!", line + "9\t!", line + "9    !")


def test_what_does_not_go_on_with_what_is_typed_goes_at_once(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    editor = neovim()
    ghost = suggested(editor, server, project)
    with server.halted_engine():
        editor.type(ghost[0] + "9")
        wait_for(lambda: editor.text.endswith("9"), "typed text")
        assert not editor.ghost()
        editor.keys("<BS><BS>")


def test_words_and_lines_are_taken(neovim: OpenNeovim, project: Path, server: Server) -> None:
    editor = neovim()
    ghost = suggested(editor, server, project)
    before = editor.text
    editor.keys("<C-l>")
    wait_for(lambda: len(editor.text) > len(before), "accepted word")
    taken = editor.text[len(before) :]
    assert ghost.startswith(taken)
    assert "\n" not in taken
    assert len(taken) < len(ghost)
    rest = wait_for(editor.ghost, "rest of the suggestion")
    assert rest.split("\n")[0] == ghost[len(taken) :].split("\n")[0]
    editor.keys("<C-j>")
    wait_for(lambda: len(editor.text) > len(before + taken), "accepted line")
    assert editor.text == before + ghost.split("\n")[0]


def test_dismissed_suggestion_is_gone(neovim: OpenNeovim, project: Path, server: Server) -> None:
    editor = neovim()
    suggested(editor, server, project)
    before = editor.text
    editor.keys("<C-]>")
    wait_for(lambda: not editor.ghost(), "no suggestion")
    assert editor.rpc.api.get_mode()["mode"] == "i"
    assert editor.text == before
    editor.keys("<C-g>t")
    editor.wait_ghost()
    editor.keys("<Esc>")
    wait_for(lambda: not editor.ghost(), "no suggestion in normal mode")
    assert editor.text == before


def test_keys_without_a_suggestion_stay_what_they_are(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim("require('redraft').setup({ cmd = COMMAND, keymaps = { accept = '<Tab>' } })")
    editor.open(project / "orders.py")
    editor.rpc.command("set expandtab shiftwidth=4 softtabstop=4")
    editor.lua("require('redraft.inline').visible = function() return false end")
    editor.keys("Go<Tab>x")
    wait_for(lambda: editor.lines[-1] == "    x", "indentation by Tab")


@pytest.mark.parametrize("version", ["0.12", "0.11"])
def test_tab_goes_on_in_a_snippet(neovim: OpenNeovim) -> None:
    editor = neovim("require('redraft').setup({ cmd = COMMAND, keymaps = { accept = '<Tab>' } })")
    editor.keys("i")
    editor.lua("vim.snippet.expand('for ${1:item} in ${2:orders}:')")
    for keys in ("one", "<Tab>", "many"):
        editor.keys(keys)
    wait_for(lambda: editor.text == "for one in many:", "second place of the snippet")


def test_no_key_is_taken_unless_named(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim("require('redraft').setup({ cmd = COMMAND })")
    editor.open(project / "orders.py")
    taken = editor.lua("""
      local taken = {}
      for _, mode in ipairs({ 'i', 'n', 'x' }) do
        local maps = vim.api.nvim_get_keymap(mode)
        vim.list_extend(maps, vim.api.nvim_buf_get_keymap(0, mode))
        for _, map in ipairs(maps) do
          if (map.desc or ''):match('^Redraft') and not map.lhs:match('^<Plug>') then
            taken[#taken + 1] = map.lhs
          end
        end
      end
      return taken""")
    assert taken == []


def test_next_and_previous_suggestion(neovim: OpenNeovim, project: Path, server: Server) -> None:
    keys = "trigger = '<C-g>t', next = '<M-n>', previous = '<M-p>'"
    editor = neovim(f"require('redraft').setup({{ cmd = COMMAND, keymaps = {{ {keys} }} }})")
    # Of several the model is sure of none, so they come when they are asked for alone.
    begun(editor, server, project, least=2)
    editor.keys("<C-g>t")
    editor.wait_ghost()

    def in_turn() -> list[str]:
        """Six presses of the key for the next one, when they go through two or three in turn."""
        shown = []
        for _ in range(6):
            editor.lua("require('redraft.inline').next()")
            shown.append(editor.ghost())
        repeats = shown[:2] * 3 == shown or shown[:3] * 2 == shown
        return shown if repeats and all(shown) and len(set(shown)) > 1 else []

    shown = wait_for(in_turn, "suggestions in turn")
    editor.keys("<M-p>")
    wait_for(lambda: editor.ghost() == shown[-2], "previous suggestion")
    editor.keys("<M-n>")
    wait_for(lambda: editor.ghost() == shown[-1], "next suggestion")


def test_emoji_and_carriage_returns_stay_with_a_suggestion(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    path = project / "orders.py"
    place = prepared_place(server, project, path.name, change=in_windows_form)
    path.write_bytes(place.text.encode())
    editor = neovim()
    editor.open(path)
    assert editor.rpc.current.buffer.options["fileformat"] == "dos"
    type_at(editor, place)
    ghost = editor.wait_ghost()
    editor.keys("<Tab>")
    typed = place.typed.replace("\r\n", "\n")
    wait_for(lambda: editor.text.startswith(typed + ghost), "accepted suggestion")
    editor.keys("<Esc>")
    taken = editor.text
    editor.rpc.current.buffer.append("# 😀 done")
    editor.rpc.command("write")
    expected = (taken + "\n# 😀 done\n").replace("\n", "\r\n")
    wait_for(lambda: path.read_bytes() == expected.encode(), "written file")


def test_second_window_shares_the_daemon(neovim: OpenNeovim, project: Path, server: Server) -> None:
    first, second = neovim(), neovim()
    first.open(project / "orders.py")
    before = server.settled()
    (project / "shapes.py").write_text(SHAPES, encoding="utf-8")
    second.open(project / "shapes.py")
    after = server.settled()
    assert after["clients"] == before["clients"] + 1
    assert after["pid"] == before["pid"]
    assert [one["pid"] for one in after["engines"]] == [one["pid"] for one in before["engines"]]


def test_killed_daemon_comes_back_while_typing(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    editor = neovim()
    ghost = suggested(editor, server, project)
    killed = server.status()["pid"]
    os.kill(killed, signal.SIGKILL)
    typed = editor.text
    editor.type(ghost[:6])
    wait_for(lambda: editor.text == typed + ghost[:6], "typed text")
    wait_for(lambda: server.status().get("pid", killed) != killed, "another daemon")
    wait_for(lambda: len(clients_of(editor)) == 1, "client")
    assert editor.text == typed + ghost[:6]
    editor.keys("<BS>" * 6)
    wait_for(lambda: editor.text == typed, "the place of the suggestion")
    editor.wait_ghost()
    assert editor.text == typed


def clients_of(editor: Neovim) -> list[int]:
    """Numbers of the server's clients that serve the buffer in front."""
    numbers: list[int] = editor.lua("""
      local clients = vim.lsp.get_clients({ name = 'redraft', bufnr = 0 })
      return vim.tbl_map(function(one) return one.id end, clients)""")
    return numbers


TYPE_BETWEEN = """
local restart = require('redraft.restart')
local exited = restart.exited
-- As keys that Neovim takes between two of its own functions: no client has the buffer any more.
restart.exited = function(...)
  vim.schedule(function()
    vim.api.nvim_buf_set_text(0, 0, 0, 0, 0, { '# typed between', '' })
  end)
  exited(...)
end
vim.g.told = 0
vim.api.nvim_create_autocmd('LspNotify', {
  callback = function(event)
    local is_change = event.data.method == 'textDocument/didChange'
    vim.g.told = is_change and event.data.client_id or vim.g.told
  end,
})
"""


def test_killed_server_is_started_again_while_typing(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    patient = "completion = { timeoutMs = 60000 }, context = { crossFile = false }"
    editor = neovim(f"require('redraft').setup({{ cmd = COMMAND, settings = {{ {patient} }} }})")
    suggested(editor, server, project)
    (before,) = clients_of(editor)
    typed = editor.text
    editor.lua(TYPE_BETWEEN)
    for front in server.fronts():
        os.kill(front, signal.SIGKILL)
    wait_for(lambda: (now := clients_of(editor)) and now != [before], "another client")
    wait_for(editor.ghost, "a suggestion, unasked")
    assert editor.text == "# typed between\n" + typed
    editor.type("x")
    wait_for(lambda: [editor.rpc.vars["told"]] == clients_of(editor), "a change told to the server")
    client_names = "vim.tbl_map(function(one) return one.name end, vim.lsp.get_clients())"
    assert editor.lua(f"return {client_names}") == ["redraft"]
    editor.lua("local one = vim.lsp.get_clients()[1]; require('redraft.client').stop(one, false)")
    wait_for(lambda: editor.lua(f"return {client_names}") == [], "no client")


def test_pause_and_resume(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim()
    editor.open(project / "orders.py")

    def statusline() -> str:
        return str(editor.lua("return require('redraft').statusline()"))

    for command in ("pause", "snooze 5"):
        editor.rpc.command(f"Redraft {command}")
        wait_for(lambda: statusline().endswith("paused"), f"statusline of {command}")
        editor.rpc.command("Redraft resume")
        wait_for(lambda: "paused" not in statusline(), f"statusline after {command}")
    editor.rpc.command("Redraft reindex")
    editor.rpc.command("Redraft status")
    wait_for(lambda: "state: " in editor.messages(), "status")
    assert "rror" not in editor.messages()


CHOOSE = """
vim.g.offered = {}
vim.ui.select = function(items, options, chosen)
  vim.g.offered = vim.tbl_map(options.format_item, items)
  for place, shown in ipairs(vim.g.offered) do
    if vim.startswith(shown, 'chosen-here (') then return chosen(items[place]) end
  end
end
"""


def test_a_model_on_the_machine_is_chosen(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    store = Path(server.environment["XDG_CACHE_HOME"]) / "llama.cpp" / "chosen-here"
    ignored = shutil.ignore_patterns("draft")
    shutil.copytree(SMALL_MODEL, store, ignore=ignored)
    kept = Path(server.environment["XDG_CONFIG_HOME"]) / "redraft" / "models.json"
    editor = neovim()
    try:
        editor.open(project / "orders.py")
        editor.lua(CHOOSE)
        editor.rpc.command("Redraft model")
        offered = wait_for(lambda: editor.lua("return vim.g.offered"), "list of models")
        others = [one for one in offered if not one.startswith("default (")]
        assert others[0].startswith("chosen-here (")
        wait_for(lambda: server.engine_of("chosen-here"), "engine of the chosen model")
        assert "chosen-here" in kept.read_text()
    finally:
        kept.write_text(json.dumps({"completion": EDITORS_MODEL}))
        shutil.rmtree(store)


TELL_FETCHING = """
local status = vim.deepcopy(require('redraft.status').latest)
status.fetching = ...
require('redraft.status').changed(status)
vim.cmd.redraw()
local shown = {}
for column = 1, vim.o.columns do shown[column] = vim.fn.screenstring(vim.o.lines, column) end
return vim.trim(table.concat(shown))
"""


def test_the_last_line_says_how_far_a_model_is_that_is_fetched(
    neovim: OpenNeovim, project: Path
) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    wait_for(lambda: editor.lua("return require('redraft.status').latest ~= nil"), "status")
    half = "the model default: fetching 49 of 98 MB"
    assert editor.lua(TELL_FETCHING, half) == f"redraft: {half}"
    cut = editor.lua(TELL_FETCHING, "the model " + "m" * 400)
    assert cut.startswith("redraft: the model mmm")
    assert len(cut) < 400
    assert editor.lua("return vim.api.nvim_get_mode().blocking") is False
    assert editor.lua(TELL_FETCHING, "") == "redraft: fetching has ended"


COLOUR = "return vim.api.nvim_get_hl(0, { name = ..., link = false }).ctermfg or vim.NIL"


def test_ghost_text_is_grey_where_a_terminal_has_no_true_colours(
    neovim: OpenNeovim, project: Path
) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    own = "ComplHint" if editor.lua("return vim.fn.hlexists('ComplHint')") else "RedraftGhost"
    assert editor.lua(COLOUR, "Normal") is None
    for name in (own, "RedraftGhost"):
        assert editor.lua(COLOUR, name) in (8, 244)
    editor.rpc.command("colorscheme habamax")
    of_the_scheme = editor.lua(COLOUR, "NonText" if own == "ComplHint" else "Comment")
    assert of_the_scheme is not None
    assert [editor.lua(COLOUR, name) for name in (own, "RedraftGhost")] == [of_the_scheme] * 2
    editor.rpc.command("highlight RedraftGhost ctermfg=3 | colorscheme default")
    assert editor.lua(COLOUR, "RedraftGhost") in (8, 244)


def test_log_of_the_server_opens(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    editor.rpc.command("Redraft log")
    wait_for(lambda: editor.rpc.current.buffer.name.endswith("daemon.log"), "log")


def test_health_has_no_error(neovim: OpenNeovim, project: Path, server: Server) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    editor.rpc.command("checkhealth redraft")
    report = wait_for(lambda: "redraft: server" in editor.text and editor.text, "report")
    assert "ERROR" not in report
    assert "WARNING" not in report
    assert "serves 1 buffer(s)" in report


def test_settings_reach_the_server(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim(
        "require('redraft').setup({ cmd = COMMAND, settings = { languages = { python = false } } })"
    )
    editor.open(project / "orders.py")
    editor.rpc.command("Redraft status")
    wait_for(lambda: "switched off for python" in editor.messages(), "reason")


def test_restarted_server_serves_the_same_buffer(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    editor = neovim()
    suggested(editor, server, project)
    before = clients_of(editor)
    editor.rpc.command("Redraft restart")
    wait_for(lambda: (now := clients_of(editor)) and now != before, "another client")
    editor.keys("<C-g>t")
    editor.wait_ghost()


def test_unknown_option_is_refused(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim("vim.g.plain = true")
    answer = editor.lua("return { pcall(require('redraft').setup, { keymap = {} }) }")
    assert answer[0] is False
    assert "keymap" in answer[1]


@pytest.mark.parametrize("version", ["0.12", "0.11"])
def test_configuration_file_is_enough(neovim: OpenNeovim, project: Path, server: Server) -> None:
    editor = neovim("vim.lsp.config('redraft', { cmd = COMMAND }); vim.lsp.enable('redraft')")
    suggested(editor, server, project)
    before = editor.text
    editor.lua("require('redraft.inline').accept()")
    wait_for(lambda: editor.text != before, "accepted suggestion")


@pytest.mark.parametrize("version", ["0.12"])
def test_own_ghost_text_where_neovim_has_its_own(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    editor = neovim(
        "require('redraft').setup({ cmd = COMMAND, own_ghost_text = true, "
        "keymaps = { accept = '<Tab>' } })"
    )
    ghost = suggested(editor, server, project)
    assert editor.marks("redraft.ghost")
    before = editor.text
    editor.keys("<Tab>")
    wait_for(lambda: editor.text.startswith(before + ghost), "accepted suggestion")
