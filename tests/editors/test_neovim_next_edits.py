"""Next edits in Neovim with the plugin against the real server: keys, the screen, the text."""

from __future__ import annotations

from pathlib import Path

import pytest
from drive_neovim import Neovim, OpenNeovim
from installed import Server
from next_edit_files import BASKET, CALLS, RENAMED, SHOP
from prepared import prepared_place
from waiting import wait_for

pytestmark = pytest.mark.editors

SIGNS = """
local namespace = vim.api.nvim_get_namespaces()['redraft.next_edit']
local found = {}
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
  if mark[4].sign_text then found[#found + 1] = mark[2] end
end
return found
"""


def opened(editor: Neovim, project: Path, text: str = BASKET) -> None:
    """Opens a file with a text of the test's own."""
    path = project / "basket.py"
    path.write_bytes(text.encode())
    editor.open(path)


def rename(editor: Neovim, line: int = 4) -> None:
    """Types another name over the first parameter, and leaves insert mode."""
    editor.keys(f"{line}G0f(lcwamounts<Esc>")


def proposals(editor: Neovim) -> list[tuple[int, int, str]]:
    """Where a next edit shows its new text, and that text."""
    return editor.marks("redraft.added")


def wait_proposal(editor: Neovim, row: int) -> None:
    """Until the new name is shown in a row, 0-based."""
    wait_for(lambda: [(at, text) for at, _, text in proposals(editor)] == [(row, "amounts")],
             f"next edit in row {row}")  # fmt: skip


def hints(editor: Neovim) -> list[tuple[int, str]]:
    """Rows with a hint, and what it says."""
    return [(row, text) for row, _, text in editor.marks("redraft.next_edit") if text]


def test_a_rename_is_followed_by_tabs_and_undone_step_by_step(
    neovim: OpenNeovim, project: Path
) -> None:
    editor = neovim()
    opened(editor, project)
    rename(editor)
    wait_proposal(editor, 4)
    (old,) = editor.marks("redraft.hunks")
    assert old[:2] == (4, 11)
    assert "prices" in editor.lines[4]
    editor.keys("<Tab>")
    wait_for(lambda: editor.rpc.current.window.cursor == (5, 11), "cursor at the next edit")
    assert "prices" in editor.lines[4]
    editor.keys("<Tab>")
    wait_for(lambda: editor.lines[4] == "    kept = amounts", "taken next edit")
    wait_proposal(editor, 5)
    editor.keys("<Tab><Tab>")
    wait_for(lambda: editor.text + "\n" == RENAMED, "whole rename")
    wait_for(lambda: not proposals(editor), "nothing more to propose")
    editor.keys("u")
    wait_for(lambda: "prices" in editor.lines[5], "one step back")
    assert editor.lines[4] == "    kept = amounts"
    editor.keys("u")
    wait_for(lambda: editor.lines[4] == "    kept = prices", "another step back")
    assert editor.lines[3] == "def total(amounts, tax):"
    editor.keys("<C-r><C-r>")
    wait_for(lambda: editor.text + "\n" == RENAMED, "both steps again")


def test_a_rejected_one_stays_away(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim()
    opened(editor, project)
    rename(editor)
    wait_proposal(editor, 4)
    editor.keys("<Esc>")
    wait_proposal(editor, 5)
    editor.keys("<Esc>")
    wait_for(lambda: not proposals(editor), "nothing more to propose")
    editor.rpc.command("RedraftNextEdit")
    wait_for(lambda: "no next edit" in editor.messages(), "answer")
    assert not proposals(editor)
    assert editor.text.count("prices") == 2


def test_one_of_several_is_taken_alone(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim()
    opened(editor, project)
    rename(editor)
    wait_proposal(editor, 4)
    editor.keys("<Esc>")
    wait_proposal(editor, 5)
    editor.keys("<Tab><Tab>")
    wait_for(lambda: "sum(amounts)" in editor.lines[5], "taken next edit")
    wait_for(lambda: not proposals(editor), "nothing more to propose")
    assert editor.lines[4] == "    kept = prices"
    editor.keys("u")
    wait_for(lambda: "sum(prices)" in editor.lines[5], "one step back")
    assert editor.lines[3] == "def total(amounts, tax):"


def test_keys_are_the_users_own_where_nothing_is_shown(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim()
    opened(editor, project)
    editor.lua("""
      vim.g.tabs, vim.g.escapes = 0, 0
      vim.keymap.set('n', '<Tab>', function() vim.g.tabs = vim.g.tabs + 1 end, { buffer = 0 })
      vim.keymap.set('n', '<Esc>', function() vim.g.escapes = vim.g.escapes + 1 end)""")
    editor.keys("<Tab><Esc>")
    wait_for(lambda: editor.lua("return vim.g.tabs == 1 and vim.g.escapes == 1"), "own mappings")
    rename(editor)
    wait_proposal(editor, 4)
    editor.keys("<Tab><Tab>")
    wait_proposal(editor, 5)
    editor.keys("<Esc>")
    wait_for(lambda: not proposals(editor), "rejected next edit")
    assert editor.lua("return { vim.g.tabs, vim.g.escapes }") == [1, 1]
    editor.keys("<Tab><Esc>")
    wait_for(lambda: editor.lua("return vim.g.tabs == 2 and vim.g.escapes == 2"), "own mappings")


def test_tab_follows_in_insert_mode_and_indents_otherwise(
    neovim: OpenNeovim, project: Path
) -> None:
    editor = neovim()
    opened(editor, project)
    editor.lua("require('redraft.inline').visible = function() return false end")
    editor.keys("4G0f(lcwamounts")
    wait_proposal(editor, 4)
    editor.keys("<Tab><Tab>")
    wait_for(lambda: editor.lines[4] == "    kept = amounts", "taken next edit")
    assert editor.rpc.api.get_mode()["mode"] == "i"
    assert editor.rpc.current.window.cursor == (5, len("    kept = amounts"))
    wait_proposal(editor, 5)
    editor.keys("<C-]>")
    wait_for(lambda: not proposals(editor), "rejected next edit")
    editor.rpc.command("set expandtab shiftwidth=4 softtabstop=4")
    editor.keys("<End><Tab>x")
    wait_for(lambda: editor.lines[4] == "    kept = amounts  x", "indentation by Tab")


def test_one_out_of_sight_is_a_sign_and_a_hint(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim()
    filler = "".join(f"    # line {number}\n" for number in range(100))
    opened(editor, project, BASKET.replace("    kept = prices\n", filler))
    rename(editor)
    wait_for(lambda: hints(editor) == [(3, "⇥ basket.py:105 rename prices to amounts")], "hint")
    assert editor.lua(SIGNS) == [3, 104]
    assert not proposals(editor)
    editor.keys("<Tab>")
    wait_proposal(editor, 104)
    assert editor.rpc.current.window.cursor == (105, 15)
    assert not hints(editor)
    editor.keys("<Tab>")
    wait_for(lambda: editor.lines[104].startswith("    return sum(amounts)"), "taken next edit")
    editor.keys("<C-o>")
    wait_for(lambda: editor.rpc.current.window.cursor[0] == 4, "back by the jump list")


def test_one_in_another_file_is_jumped_to(neovim: OpenNeovim, project: Path) -> None:
    (project / "shop.py").write_text(SHOP, encoding="utf-8")
    editor = neovim()
    opened(editor, project)
    editor.keys("4G0wcwsum_up<Esc>")
    at_line = "⇥ shop.py:1 rename total to sum_up"
    wait_for(lambda: [text for _, text in hints(editor)] == [at_line], "hint")
    editor.keys("<Tab>")
    wait_for(lambda: editor.rpc.current.buffer.name.endswith("shop.py"), "other file")
    wait_for(lambda: proposals(editor) == [(0, 24, "sum_up")], "next edit in the other file")
    editor.keys("<Tab>")
    wait_for(lambda: editor.lines[0] == "from basket import sum_up", "taken next edit")
    wait_for(lambda: [row for row, _, _ in proposals(editor)] == [4], "the call")
    editor.keys("<Tab><Tab>")
    done = SHOP.replace("total", "sum_up")
    wait_for(lambda: editor.text + "\n" == done, "whole rename")
    editor.rpc.command("edit #")
    assert editor.text + "\n" == BASKET.replace("total", "sum_up")


def test_what_is_inserted_is_ghost_text_and_what_is_unknown_only_a_place(
    neovim: OpenNeovim, project: Path
) -> None:
    editor = neovim()
    opened(editor, project, CALLS)
    editor.keys("1G0f)i, tax<Esc>")
    wait_for(lambda: proposals(editor) == [(5, 23, ", tax")], "argument")
    highlights = editor.lua("""
      local added = vim.api.nvim_get_namespaces()['redraft.added']
      local marks = vim.api.nvim_buf_get_extmarks(0, added, 0, -1, { details = true })
      return vim.tbl_map(function(mark) return mark[4].virt_text[1][2] end, marks)""")
    assert highlights == ["RedraftGhost"]
    editor.keys("<Tab><Tab>")
    wait_for(lambda: editor.lines[5] == "    return total(prices, tax)", "taken argument")
    (hint,) = wait_for(lambda: hints(editor), "place without a text")
    assert hint[0] == 9
    assert not proposals(editor)
    editor.keys("<Tab>")
    wait_for(lambda: editor.rpc.current.window.cursor[0] == 10, "cursor at the call")
    wait_for(lambda: not hints(editor), "a place that was visited")
    assert editor.lines[9] == "    return total(prices)"


CANCEL_BY_TYPING = """
_G.requests = {}
vim.api.nvim_create_autocmd('LspRequest', {
  callback = function(event)
    local request, id = event.data.request, event.data.request_id
    if request.method ~= 'redraft/nextEdit' then return end
    -- On a busy machine one may have been sent before the name was whole.
    local is_whole = vim.api.nvim_get_current_line():find('amounts', 1, true)
    if is_whole and not _G.first and request.type == 'pending' then
      _G.first = id
      vim.api.nvim_feedkeys('2', 'n', false)
    end
    if id == _G.first then table.insert(_G.requests, request.type) end
  end,
})
"""


def test_the_next_key_cancels_the_request(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim()
    opened(editor, project)
    editor.lua("require('redraft.inline').visible = function() return false end")
    editor.keys("4G0f(lcw")
    editor.lua(CANCEL_BY_TYPING)
    editor.type("amounts")
    shown = wait_for(lambda: proposals(editor), "next edit of the whole name")
    assert shown == [(4, 17, "amounts2")]
    assert editor.lua("return _G.requests")[:2] == ["pending", "cancel"]


def test_quiet_mode_shows_the_sign_until_the_key(neovim: OpenNeovim, project: Path) -> None:
    settings = "settings = { nextEdits = { display = 'sign' } }"
    editor = neovim(f"require('redraft').setup({{ cmd = COMMAND, {settings} }})")
    opened(editor, project)
    rename(editor)
    wait_for(lambda: editor.lua(SIGNS) == [4], "sign")
    assert not proposals(editor)
    assert not hints(editor)
    editor.keys("<Tab>")
    wait_proposal(editor, 4)
    editor.keys("<Tab>")
    wait_for(lambda: editor.lines[4] == "    kept = amounts", "taken next edit")
    wait_for(lambda: editor.lua(SIGNS) == [5], "the next sign")
    assert not proposals(editor)


def test_a_completion_wins(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim()
    opened(editor, project)
    editor.lua(
        "require('redraft.inline').visible = function() return vim.g.completion or false end"
    )
    editor.keys("4G0f(lcwamounts")
    wait_proposal(editor, 4)
    editor.lua("vim.g.completion = true; vim.keymap.set('i', '<Tab>', '[taken]')")
    editor.keys("<Tab>")
    wait_for(lambda: editor.lines[3].startswith("def total(amounts[taken]"), "the completion's key")
    assert not proposals(editor)
    assert "prices" in editor.lines[4]
    editor.lua("vim.g.completion = false")
    editor.keys("<BS>" * len("[taken]"))
    wait_proposal(editor, 4)


def test_ghost_text_takes_the_key(neovim: OpenNeovim, project: Path, server: Server) -> None:
    def begun(text: str) -> str:
        return text.replace("def order_total(prices", "def order_total(amounts")

    path = project / "orders.py"
    place = prepared_place(server, project, path.name, change=begun)
    path.write_text(place.text.replace("amounts", "prices"), encoding="utf-8")
    editor = neovim()
    editor.open(path)
    rename(editor)
    wait_proposal(editor, 6)
    editor.keys("GA")
    editor.type(place.key)
    ghost = editor.wait_ghost()
    wait_for(lambda: not proposals(editor) and not hints(editor), "no next edit beside ghost text")
    editor.keys("<Tab>")
    wait_for(lambda: editor.text.startswith(place.typed + ghost), "accepted suggestion")
    assert "in prices:" in editor.lines[6]


def test_what_the_text_outran_is_not_taken(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim()
    opened(editor, project)
    rename(editor)
    wait_proposal(editor, 4)
    # Both happen before Neovim tells anyone of the change.
    editor.lua("""
      vim.api.nvim_buf_set_lines(0, 4, 5, false, { '    other = prices' })
      require('redraft.next_edits').take()""")
    assert editor.lines[4] == "    other = prices"
    assert not proposals(editor)


def test_keys_are_configured_or_switched_off(neovim: OpenNeovim, project: Path) -> None:
    keys = "next_edit_keymaps = { take = 'gt', reject = false, reject_in_normal_mode = false }"
    editor = neovim(f"require('redraft').setup({{ cmd = COMMAND, {keys} }})")
    opened(editor, project)
    rename(editor)
    wait_proposal(editor, 4)
    maps = editor.lua("""
      local maps = vim.api.nvim_buf_get_keymap(0, 'n')
      vim.list_extend(maps, vim.api.nvim_buf_get_keymap(0, 'i'))
      maps = vim.tbl_filter(function(map) return (map.desc or ''):match('^Redraft') end, maps)
      return vim.tbl_map(function(map) return map.lhs end, maps)""")
    assert maps == ["gt", "gt"]
    editor.keys("gtgt")
    wait_for(lambda: editor.lines[4] == "    kept = amounts", "taken next edit")


def test_no_byte_changes_outside_of_a_next_edit(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim()
    text = BASKET.replace("    kept = prices", '    kept =\t"🛒é", prices, "\u4e16 "').replace(
        "\n", "\r\n"
    )
    opened(editor, project, text)
    assert editor.rpc.current.buffer.options["fileformat"] == "dos"
    rename(editor)
    wait_proposal(editor, 4)
    editor.keys("<Tab><Tab>")
    wait_proposal(editor, 5)
    editor.keys("<Tab><Tab>")
    wait_for(lambda: editor.text.count("prices") == 0, "whole rename")
    editor.rpc.command("write")
    expected = text.replace("prices", "amounts").encode()
    assert (project / "basket.py").read_bytes() == expected
