"""Edits in Neovim with the plugin against the real server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from drive_neovim import Neovim, OpenNeovim
from installed import Server
from prepared import (
    Edit,
    changes_something,
    changes_two_places,
    in_windows_form,
    is_written_by_the_model,
    prepared_edit,
    replaces_first,
)
from waiting import wait_for

pytestmark = pytest.mark.editors


def opened_for_edit(
    editor: Neovim,
    server: Server,
    project: Path,
    wanted: Callable[[Edit], bool] = changes_something,
) -> Edit:
    """Opens a file in which the model can do something."""
    edit = prepared_edit(server, project, "orders.py", wanted)
    (project / "orders.py").write_text(edit.text, encoding="utf-8")
    editor.open(project / "orders.py")
    return edit


def ask_for_edit(editor: Neovim, edit: Edit) -> None:
    """Selects the lines and types the instruction into the prompt."""
    editor.keys(f"{edit.first}GV{edit.last}G:Redraft edit<CR>")
    wait_prompt(editor)
    editor.type(edit.instruction)
    editor.keys("<CR>")


def wait_prompt(editor: Neovim) -> None:
    """Until an instruction can be typed."""
    wait_for(lambda: editor.rpc.current.buffer.options["buftype"] == "prompt", "prompt")
    wait_for(lambda: editor.rpc.api.get_mode()["mode"] == "i", "insert mode")


def run_edit(editor: Neovim, edit: Edit) -> None:
    """Asks by the command and waits for the preview."""
    editor.rpc.command(f"{edit.first},{edit.last}Redraft edit {edit.instruction}")
    wait_preview(editor)


def wait_preview(editor: Neovim) -> None:
    """Until the whole answer is shown."""
    wait_for(lambda: editor.edit_state() == "preview", "preview")


def test_edit_is_previewed_accepted_and_undone_at_once(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    editor = neovim()
    edit = opened_for_edit(editor, server, project)
    ask_for_edit(editor, edit)
    wait_preview(editor)
    assert editor.text + "\n" == edit.text
    assert len(editor.marks("redraft.hunks")) == len(edit.hunks)
    shown = "".join(mark[2] for mark in editor.marks("redraft.added"))
    new_lines = [line for hunk in edit.hunks for line in hunk.new.split("\n")]
    assert all(line in shown for line in new_lines)
    editor.keys("<C-y>")
    wait_for(lambda: editor.edit_state() is None, "decided edit")
    assert editor.text + "\n" == edit.after
    assert not editor.marks("redraft.hunks")
    assert not editor.marks("redraft.added")
    editor.keys("u")
    wait_for(lambda: editor.text + "\n" == edit.text, "one undo step")
    editor.keys("<C-r>")
    wait_for(lambda: editor.text + "\n" == edit.after, "one redo step")


RECORD_STREAM = """
_G.streamed = {}
local set = vim.api.nvim_buf_set_extmark
vim.api.nvim_buf_set_extmark = function(buffer, namespace, line, column, options)
  if namespace == vim.api.nvim_get_namespaces()["redraft.stream"] then
    for _, chunks in ipairs(options.virt_lines) do
      for _, chunk in ipairs(chunks) do table.insert(_G.streamed, chunk[1]) end
    end
  end
  return set(buffer, namespace, line, column, options)
end
"""


def test_answer_streams_below_the_lines(neovim: OpenNeovim, project: Path, server: Server) -> None:
    editor = neovim()
    edit = opened_for_edit(editor, server, project, is_written_by_the_model)
    first_line = edit.text.split("\n")[edit.first - 1].split()[0]
    # A model may be done before one can look, so Neovim itself notes what it showed.
    editor.lua(RECORD_STREAM)
    with server.slow_engine():
        editor.rpc.command(f"{edit.first},{edit.last}Redraft edit {edit.instruction}")
        wait_preview(editor)
    shown = "".join(editor.lua("return _G.streamed"))
    assert "tokens; " in shown
    assert first_line in shown
    assert editor.text + "\n" == edit.text
    assert not editor.marks("redraft.stream")


def test_hunks_are_decided_one_by_one(neovim: OpenNeovim, project: Path, server: Server) -> None:
    editor = neovim()
    edit = opened_for_edit(editor, server, project, changes_two_places)
    ask_for_edit(editor, edit)
    wait_preview(editor)
    count = len(editor.marks("redraft.hunks"))
    editor.keys("gg]hgy")
    wait_for(lambda: len(editor.marks("redraft.hunks")) == count - 1, "one hunk less")
    assert editor.text + "\n" == edit.with_hunks(0)
    editor.keys("]hgY")
    wait_for(lambda: len(editor.marks("redraft.hunks")) == count - 2, "another hunk less")
    editor.rpc.command("Redraft discard")
    wait_for(lambda: editor.edit_state() is None, "decided edit")
    assert editor.text + "\n" == edit.with_hunks(0)


def test_edit_is_compared_side_by_side(neovim: OpenNeovim, project: Path, server: Server) -> None:
    editor = neovim()
    edit = opened_for_edit(editor, server, project)
    run_edit(editor, edit)
    editor.rpc.command("Redraft diff")
    windows = editor.rpc.current.tabpage.windows
    assert len(windows) == 2
    assert all(window.options["diff"] for window in windows)
    assert editor.text + "\n" == edit.after
    editor.rpc.command("tabclose")
    editor.rpc.command("Redraft accept")
    assert editor.text + "\n" == edit.after


def test_edit_lands_where_its_lines_went(neovim: OpenNeovim, project: Path, server: Server) -> None:
    editor = neovim()
    edit = opened_for_edit(editor, server, project)
    insert_two_lines = "vim.api.nvim_buf_set_lines(0, 0, 0, false, { '# one', '# two' })"
    command = f"{edit.first},{edit.last}Redraft edit {edit.instruction}"
    editor.lua(f"vim.cmd(...); {insert_two_lines}", command)
    wait_preview(editor)
    editor.rpc.current.buffer.append("# three", 0)
    editor.rpc.command("Redraft accept")
    assert editor.text + "\n" == "# three\n# one\n# two\n" + edit.after


def test_typing_into_an_edited_line_drops_its_hunk(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    editor = neovim()
    run_edit(editor, opened_for_edit(editor, server, project, replaces_first))
    row = editor.marks("redraft.hunks")[0][0]
    editor.rpc.current.buffer[row] = "    mine = 1"
    editor.rpc.command("Redraft accept")
    assert editor.lines[row] == "    mine = 1"
    assert "no longer fit" in editor.messages()


def test_edit_is_cancelled(neovim: OpenNeovim, project: Path, server: Server) -> None:
    editor = neovim()
    edit = opened_for_edit(editor, server, project, is_written_by_the_model)
    with server.halted_engine():
        ask_for_edit(editor, edit)
        wait_for(lambda: editor.edit_state() == "running", "running edit")
        assert edit.instruction in editor.marks("redraft.stream")[0][2]
        editor.rpc.command("Redraft cancel")
        assert editor.edit_state() is None
        assert not editor.marks("redraft.stream")
    server.wait_idle()
    assert editor.text + "\n" == edit.text
    assert "rror" not in editor.messages()


def test_what_the_server_warns_of_is_told(neovim: OpenNeovim, project: Path) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    editor.lua("""
      local span = { start = { line = 3, character = 0 }, ['end'] = { line = 3, character = 0 } }
      require('redraft.client').request = function(_, _, params, answered)
        vim.schedule(function()
          answered(nil, {
            hunks = { { range = span, oldText = '', newText = '# new\\n' } },
            version = params.textDocument.version,
            warning = 'line 1 of the new text holds the hidden character U+202E',
          })
        end)
        return 1
      end""")
    editor.rpc.command("4,9Redraft edit anything")
    wait_preview(editor)
    assert "U+202E" in editor.messages()


def test_code_action_asks_for_the_instruction(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    editor = neovim()
    edit = opened_for_edit(editor, server, project)
    editor.keys(f"{edit.first}GV{edit.last}G")
    editor.lua("""
      vim.lsp.buf.code_action({
        apply = true,
        filter = function(action) return action.title:match('^Edit with instruction') ~= nil end,
      })""")
    wait_prompt(editor)
    editor.type(edit.instruction)
    editor.keys("<CR>")
    wait_preview(editor)


def test_earlier_instructions_come_back(neovim: OpenNeovim, project: Path, server: Server) -> None:
    editor = neovim()
    edit = opened_for_edit(editor, server, project)
    ask_for_edit(editor, edit)
    wait_preview(editor)
    editor.keys(f"<C-e>:{edit.first},{edit.last}Redraft edit<CR>")
    wait_prompt(editor)
    editor.keys("<Up>")
    wait_for(lambda: editor.lines == ["> " + edit.instruction], "earlier instruction")
    editor.keys("<C-c>")
    wait_for(lambda: editor.rpc.current.buffer.options["buftype"] == "", "closed prompt")
    assert editor.text + "\n" == edit.text


def test_emoji_and_carriage_returns_stay_with_an_edit(
    neovim: OpenNeovim, project: Path, server: Server
) -> None:
    path = project / "orders.py"
    edit = prepared_edit(server, project, path.name, change=in_windows_form)
    path.write_bytes(edit.text.encode())
    editor = neovim()
    editor.open(path)
    assert editor.rpc.current.buffer.options["fileformat"] == "dos"
    run_edit(editor, edit)
    editor.rpc.command("Redraft accept")
    editor.rpc.current.buffer.append("# 😀 done")
    editor.rpc.command("write")
    expected = edit.after + "# 😀 done\r\n"
    wait_for(lambda: path.read_bytes() == expected.encode(), "written file")
