"""Neovim with the plugin against the real server: what the fingers do and what the screen shows."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drive_neovim import Neovim
from installed import Installed, Server, wait_for
from projects import ORDERS, RENAME, TYPED_BEFORE, long_module, make_project

pytestmark = [pytest.mark.editors, pytest.mark.timeout(300)]

Open = Callable[..., Neovim]


@pytest.fixture(params=["0.12", "0.10"])
def version(request: pytest.FixtureRequest) -> str:
    """Neovim that draws suggestions itself, and one for which the plugin draws."""
    return str(request.param)


@pytest.fixture
def neovim(installed: Installed, server: Server, tmp_path: Path, version: str) -> Iterator[Open]:
    """Starts Neovims; all are closed at the end."""
    started: list[Neovim] = []

    def start(setup: str | None = None) -> Neovim:
        binary = installed.neovim if version == "0.12" else installed.older_neovim
        started.append(Neovim(binary, tmp_path / f"editor{len(started)}", server, setup))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


def suggested(editor: Neovim, project: Path) -> str:
    """Opens a file, types the start of a line whose rest the model knows, and waits for it."""
    editor.open(project / "orders.py")
    editor.rpc.current.buffer.append(TYPED_BEFORE)
    editor.keys("GA[")
    return editor.wait_ghost(60)


def test_suggestion_is_taken_whole(neovim: Open, project: Path) -> None:
    editor = neovim()
    ghost = suggested(editor, project)
    before = editor.text
    editor.keys("<Tab>")
    wait_for(lambda: editor.text == before + ghost, "accepted suggestion")
    editor.keys("<Esc>u")
    wait_for(lambda: editor.text == before, "undo of the suggestion alone")


def test_typing_what_is_suggested_keeps_the_rest(neovim: Open, project: Path) -> None:
    editor = neovim()
    ghost = suggested(editor, project)
    for count in range(1, 4):
        editor.keys(ghost[count - 1])
        wait_for(lambda count=count: editor.ghost() == ghost[count:], "rest of the suggestion")
    editor.keys("0x")
    wait_for(lambda: editor.ghost() != ghost[3:], "another suggestion or none")


def test_words_and_lines_are_taken(neovim: Open, project: Path) -> None:
    editor = neovim()
    ghost = suggested(editor, project)
    before = editor.text
    editor.keys("<C-l>")
    wait_for(lambda: len(editor.text) > len(before), "accepted word")
    taken = editor.text[len(before) :]
    assert ghost.startswith(taken)
    assert "\n" not in taken
    assert len(taken) < len(ghost)
    rest = wait_for(editor.ghost, "rest of the suggestion")
    assert ghost[len(taken) :].startswith(rest) or rest.startswith(ghost[len(taken) :])
    editor.keys("<C-j>")
    wait_for(lambda: len(editor.text) > len(before + taken), "accepted line")
    assert (
        editor.text.splitlines()[-1]
        == (before + taken + rest).splitlines()[len(before.splitlines()) - 1]
    )


def test_dismissed_suggestion_is_gone(neovim: Open, project: Path) -> None:
    editor = neovim()
    suggested(editor, project)
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


def test_keys_without_a_suggestion_stay_what_they_are(neovim: Open, project: Path) -> None:
    editor = neovim("require('redraft').setup({ cmd = COMMAND, keymaps = { accept = '<Tab>' } })")
    editor.open(project / "orders.py")
    editor.rpc.command("set expandtab shiftwidth=4 softtabstop=4")
    editor.lua("require('redraft.inline').visible = function() return false end")
    editor.keys("Go<Tab>x")
    wait_for(lambda: editor.lines[-1] == "    x", "indentation by Tab")


def ask_for_edit(editor: Neovim, instruction: str) -> None:
    """Selects the first function and types the instruction into the prompt."""
    editor.keys("4GVjjjjj:Redraft edit<CR>")
    wait_for(lambda: editor.rpc.current.buffer.options["buftype"] == "prompt", "prompt")
    wait_for(lambda: editor.rpc.api.get_mode()["mode"] == "i", "insert mode")
    editor.keys(instruction + "<CR>")


def test_edit_is_previewed_accepted_and_undone_at_once(neovim: Open, project: Path) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    ask_for_edit(editor, RENAME)
    wait_for(lambda: editor.edit_state() == "preview", "preview", 60)
    assert editor.text + "\n" == ORDERS
    assert editor.marks("redraft.hunks")
    assert "item" in "".join(mark[2] for mark in editor.marks("redraft.added"))
    editor.keys("<C-y>")
    wait_for(lambda: editor.edit_state() is None, "decided edit")
    edited = editor.text
    assert "items" in edited
    assert not editor.marks("redraft.hunks")
    assert not editor.marks("redraft.added")
    editor.keys("u")
    wait_for(lambda: editor.text + "\n" == ORDERS, "one undo step")
    editor.keys("<C-r>")
    wait_for(lambda: editor.text == edited, "one redo step")


def test_hunks_are_decided_one_by_one(neovim: Open, project: Path) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    ask_for_edit(editor, RENAME)
    wait_for(lambda: editor.edit_state() == "preview", "preview", 60)
    count = len(editor.marks("redraft.hunks"))
    assert count >= 2
    editor.keys("gg]hgy")
    wait_for(lambda: len(editor.marks("redraft.hunks")) == count - 1, "one hunk less")
    changed = [
        new for old, new in zip(ORDERS.splitlines(), editor.lines, strict=False) if old != new
    ]
    assert changed
    editor.keys("]hgY")
    wait_for(lambda: len(editor.marks("redraft.hunks")) == count - 2, "another hunk less")
    editor.keys("<C-e>")
    wait_for(lambda: editor.edit_state() is None, "decided edit")
    assert [
        new for old, new in zip(ORDERS.splitlines(), editor.lines, strict=False) if old != new
    ] == changed


def test_edit_is_compared_side_by_side(neovim: Open, project: Path) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    editor.rpc.command(f"4,9Redraft edit {RENAME}")
    wait_for(lambda: editor.edit_state() == "preview", "preview", 60)
    editor.rpc.command("Redraft diff")
    windows = editor.rpc.current.tabpage.windows
    assert len(windows) == 2
    assert all(window.options["diff"] for window in windows)
    assert "items" in editor.text
    editor.rpc.command("tabclose")
    editor.rpc.command("Redraft accept")
    assert "items" in editor.text


def test_edit_lands_where_its_lines_went(neovim: Open, project: Path) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    editor.rpc.command(f"4,9Redraft edit {RENAME}")
    wait_for(lambda: editor.edit_state() == "preview", "preview", 60)
    editor.rpc.command("Redraft accept")
    expected = editor.text
    editor.rpc.command("edit!")
    insert_two_lines = "vim.api.nvim_buf_set_lines(0, 0, 0, false, { '# one', '# two' })"
    editor.lua(f"vim.cmd('4,9Redraft edit {RENAME}'); {insert_two_lines}")
    wait_for(lambda: editor.edit_state() == "preview", "preview", 60)
    editor.rpc.current.buffer.append("# three", 0)
    editor.rpc.command("Redraft accept")
    assert editor.text == "# three\n# one\n# two\n" + expected


def test_typing_into_an_edited_line_drops_its_hunk(neovim: Open, project: Path) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    editor.rpc.command(f"4,9Redraft edit {RENAME}")
    wait_for(lambda: editor.edit_state() == "preview", "preview", 60)
    row = editor.marks("redraft.hunks")[0][0]
    editor.rpc.current.buffer[row] = "    mine = 1"
    editor.rpc.command("Redraft accept")
    assert editor.lines[row] == "    mine = 1"
    assert "no longer fit" in editor.messages()


def test_edit_is_cancelled(neovim: Open, project: Path, server: Server) -> None:
    editor = neovim()
    module = long_module()
    (project / "long.py").write_text(module, encoding="utf-8")
    editor.open(project / "long.py")
    running = editor.lua(
        """
        vim.cmd('%Redraft edit ' .. ...)
        local namespace = vim.api.nvim_get_namespaces()['redraft.stream']
        local function streamed()
          local mark = vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })[1]
          return mark and #mark[4].virt_lines > 3
        end
        vim.wait(60000, streamed, 1)
        local state = require('redraft.edit').state()
        vim.cmd('Redraft cancel')
        return state
        """,
        RENAME,
    )
    assert running == "running"
    assert editor.edit_state() is None
    assert not editor.marks("redraft.stream")
    assert editor.text + "\n" == module
    wait_for(
        lambda: all(one["queue"] == 0 for one in server.status()["engines"]), "idle engine", 20
    )
    assert "rror" not in editor.messages()


def test_code_action_asks_for_the_instruction(neovim: Open, project: Path) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    editor.keys("4GVjjjjj")
    editor.lua("""
      vim.lsp.buf.code_action({
        apply = true,
        filter = function(action) return action.title:match('^Edit with instruction') ~= nil end,
      })""")
    wait_for(lambda: editor.rpc.current.buffer.options["buftype"] == "prompt", "prompt")
    wait_for(lambda: editor.rpc.api.get_mode()["mode"] == "i", "insert mode")
    editor.keys(RENAME + "<CR>")
    wait_for(lambda: editor.edit_state() == "preview", "preview", 60)


def test_earlier_instructions_come_back(neovim: Open, project: Path) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    ask_for_edit(editor, RENAME)
    wait_for(lambda: editor.edit_state() == "preview", "preview", 60)
    editor.keys("<C-e>:4,9Redraft edit<CR>")
    wait_for(lambda: editor.rpc.current.buffer.options["buftype"] == "prompt", "prompt")
    wait_for(lambda: editor.rpc.api.get_mode()["mode"] == "i", "insert mode")
    editor.keys("<Up>")
    wait_for(lambda: editor.lines == ["> " + RENAME], "earlier instruction")
    editor.keys("<C-c>")
    wait_for(lambda: editor.rpc.current.buffer.options["buftype"] == "", "closed prompt")
    assert editor.text + "\n" == ORDERS


def test_emoji_and_carriage_returns_stay(neovim: Open, project: Path) -> None:
    before = ORDERS.replace("Orders and", "Orders 🛒 and é").replace("\n", "\r\n").encode()
    path = project / "shop.py"
    path.write_bytes(before)
    editor = neovim()
    editor.open(path)
    assert editor.rpc.current.buffer.options["fileformat"] == "dos"
    editor.rpc.command(f"4,9Redraft edit {RENAME}")
    wait_for(lambda: editor.edit_state() == "preview", "preview", 60)
    editor.rpc.command("Redraft accept")
    editor.rpc.current.buffer.append(["", "# 😀 done", *TYPED_BEFORE])
    editor.keys("GA[")
    ghost = editor.wait_ghost()
    typed = editor.text
    editor.keys("<Tab>")
    wait_for(lambda: editor.text == typed + ghost, "accepted suggestion")
    editor.keys("<Esc>:w<CR>")
    wait_for(lambda: path.read_bytes() != before, "written file")
    after = path.read_bytes()
    assert after.count(b"\n") == after.count(b"\r\n")
    assert after.count(b"\r") == after.count(b"\n")
    assert "Orders 🛒 and é".encode() in after
    assert "# 😀 done\r\n".encode() in after
    assert b"items" in after


def test_second_window_shares_the_daemon(neovim: Open, project: Path, server: Server) -> None:
    first, second = neovim(), neovim()
    first.open(project / "orders.py")
    second.open(project / "shapes.py")
    status = wait_for(
        lambda: (one := server.status()).get("clients", 0) >= 2 and one, "two clients"
    )
    assert len(status["engines"]) == 1


def test_killed_daemon_comes_back_while_typing(neovim: Open, project: Path, server: Server) -> None:
    editor = neovim()
    suggested(editor, project)
    killed = server.status()["pid"]
    os.kill(killed, signal.SIGKILL)
    typed = editor.text
    editor.keys("order_")
    wait_for(lambda: editor.text == typed + "order_", "typed text")
    wait_for(lambda: server.status().get("pid", killed) != killed, "another daemon", 60)
    wait_for(
        lambda: editor.lua("return #vim.lsp.get_clients({ name = 'redraft', bufnr = 0 }) == 1"),
        "client",
        60,
    )

    def again() -> str:
        editor.keys("<C-g>t")
        return editor.ghost()

    wait_for(again, "suggestion of the new daemon", 60)
    assert editor.text == typed + "order_"


def test_pause_and_resume(neovim: Open, project: Path) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    editor.rpc.command("Redraft pause")
    wait_for(
        lambda: editor.lua("return require('redraft').statusline()").endswith("paused"),
        "paused statusline",
    )
    editor.rpc.command("Redraft resume")
    wait_for(
        lambda: "paused" not in editor.lua("return require('redraft').statusline()"),
        "resumed statusline",
    )
    editor.rpc.command("Redraft reindex")
    editor.rpc.command("Redraft status")
    wait_for(lambda: "state: " in editor.messages(), "status")
    assert "rror" not in editor.messages()


def test_log_of_the_server_opens(neovim: Open, project: Path) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    editor.rpc.command("Redraft log")
    wait_for(lambda: editor.rpc.current.buffer.name.endswith(".log"), "log")


def test_health_has_no_error(neovim: Open, project: Path) -> None:
    editor = neovim()
    editor.open(project / "orders.py")
    editor.rpc.command("checkhealth redraft")
    report = wait_for(lambda: "redraft: server" in editor.text and editor.text, "report")
    assert "ERROR" not in report
    assert "WARNING" not in report
    assert "serves 1 buffer(s)" in report


def test_unknown_option_is_refused(neovim: Open, project: Path) -> None:
    editor = neovim("vim.g.plain = true")
    answer = editor.lua("return { pcall(require('redraft').setup, { keymap = {} }) }")
    assert answer[0] is False
    assert "keymap" in answer[1]


@pytest.mark.parametrize("version", ["0.12"])
def test_configuration_file_is_enough(neovim: Open, project: Path) -> None:
    editor = neovim("vim.lsp.config('redraft', { cmd = COMMAND }); vim.lsp.enable('redraft')")
    suggested(editor, project)
    before = editor.text
    editor.lua("require('redraft.inline').accept()")
    wait_for(lambda: editor.text != before, "accepted suggestion")


@pytest.mark.parametrize("version", ["0.12"])
def test_own_ghost_text_where_neovim_has_its_own(neovim: Open, project: Path) -> None:
    editor = neovim(
        "require('redraft').setup({ cmd = COMMAND, own_ghost_text = true, "
        "keymaps = { accept = '<Tab>' } })"
    )
    ghost = suggested(editor, project)
    assert editor.marks("redraft.ghost")
    before = editor.text
    editor.keys("<Tab>")
    wait_for(lambda: editor.text == before + ghost, "accepted suggestion")
