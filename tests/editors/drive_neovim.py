"""A real Neovim, driven through its RPC as a user's keys would."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import leftovers
from installed import CLIENTS, Server
from waiting import wait_for

PLUGIN = CLIENTS / "neovim"

# A busy machine may be slower than the server is willing to wait; it then answers with nothing.
PATIENCE_S = 12.0

# Everything of a virtual line or text, in the order of the screen.
_MARKS = """
local namespace = vim.api.nvim_get_namespaces()[...]
if not namespace then return {} end
local found = {}
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
  local details, pieces = mark[4], {}
  for _, chunk in ipairs(details.virt_text or {}) do pieces[#pieces + 1] = chunk[1] end
  for _, line in ipairs(details.virt_lines or {}) do
    pieces[#pieces + 1] = '\\n'
    for _, chunk in ipairs(line) do pieces[#pieces + 1] = chunk[1] end
  end
  found[#found + 1] = { mark[2], mark[3], table.concat(pieces) }
end
return found
"""

_ASKS_WHILE_TYPING = """
local bufnr = vim.api.nvim_get_current_buf()
for _, name in ipairs({ 'nvim.lsp.inline_completion:', 'redraft.ghost:' }) do
  local ok, found = pcall(vim.api.nvim_get_autocmds, { group = name .. bufnr })
  if ok and #found > 0 then return true end
end
return false
"""


class Neovim:
    """One Neovim process with the plugin; ``setup`` is Lua that ends the user's init.lua."""

    def __init__(
        self, binary: Path, folder: Path, server: Server, setup: str | None = None,
        plugin: Path = PLUGIN,
    ) -> None:  # fmt: skip
        import pynvim

        folder.mkdir(parents=True, exist_ok=True)
        init = folder / "init.lua"
        init.write_text(init_text(server, setup, plugin), encoding="utf-8")
        previous = dict(os.environ)
        os.environ.update(editor_environment(folder))
        try:
            argv = [str(binary), "--headless", "--embed", "--clean", "-u", str(init)]
            self.rpc = pynvim.attach("child", argv=argv)
        finally:
            os.environ.clear()
            os.environ.update(previous)
        self.rpc.command("set columns=110 lines=40")
        self._process = int(self.lua("return vim.uv.os_getpid()"))

    def lua(self, code: str, *values: Any) -> Any:
        """Run Lua in the editor."""
        return self.rpc.exec_lua(code, *values)

    def keys(self, keys: str) -> None:
        """Press keys, as in mappings: ``<Esc>`` is one."""
        self.rpc.input(keys)

    def type(self, text: str) -> None:
        """Type a text as it stands."""
        self.rpc.input(text.replace("<", "<lt>"))

    def open(self, path: Path) -> None:
        """Edit a file and wait until suggestions are asked for while typing."""
        self.rpc.command(f"cd {path.parent}")
        self.rpc.command(f"edit {path}")
        wait_for(lambda: self.lua(_ASKS_WHILE_TYPING), "attached server")

    @property
    def lines(self) -> list[str]:
        """The buffer's lines."""
        lines: list[str] = self.rpc.current.buffer[:]
        return lines

    @property
    def text(self) -> str:
        """The buffer's text with newlines."""
        return "\n".join(self.lines)

    def marks(self, namespace: str) -> list[tuple[int, int, str]]:
        """(row, column, virtual text) of every extmark in a namespace."""
        return [tuple(mark) for mark in self.lua(_MARKS, namespace)]

    def ghost(self) -> str:
        """The suggestion on the screen, empty when there is none."""
        marks = self.marks("nvim.lsp.inline_completion") + self.marks("redraft.ghost")
        return marks[0][2] if marks else ""

    def wait_ghost(self) -> str:
        """The first suggestion that appears and stays; a user who sees none types on."""
        asked = time.monotonic()

        def stable() -> str:
            nonlocal asked
            if time.monotonic() - asked > PATIENCE_S:
                asked = time.monotonic()
                self.lua("require('redraft.inline').refresh()")
            first = self.ghost()
            return first if first and first == self.ghost() else ""

        return wait_for(stable, "suggestion")

    def edit_state(self) -> str | None:
        """``running``, ``preview`` or None."""
        state: str | None = self.lua("return require('redraft.edit').state()")
        return state

    def messages(self) -> str:
        """What :messages shows."""
        shown: str = self.rpc.command_output("messages")
        return shown

    def close(self) -> None:
        """Quit, and see that it has. The answer never comes: the editor is gone."""
        with contextlib.suppress(OSError, EOFError):
            self.rpc.command("qa!")
        self.rpc.close()
        leftovers.end(leftovers.still_alive([self._process]))


ALONE = "{ context = { crossFile = false } }"
"""With these settings a suggestion depends on nothing but the text of its own file."""

OpenNeovim = Callable[..., Neovim]
"""Starts a Neovim, with ``setup`` when it is given."""


def init_text(server: Server, setup: str | None, plugin: Path = PLUGIN) -> str:
    """A user's init.lua."""
    command = json.dumps([str(server.command), "serve"]).replace("[", "{").replace("]", "}")
    if setup is None:
        keys = "accept = '<Tab>', accept_word = '<C-l>', accept_line = '<C-j>', "
        keys += "dismiss = '<C-]>', trigger = '<C-g>t'"
        options = f"cmd = COMMAND, settings = SETTINGS, keymaps = {{ {keys} }}"
        setup = f"require('redraft').setup({{ {options} }})"
    # What is typed is what stands in the buffer: no key but those for a new line indents.
    return f"""
vim.api.nvim_create_autocmd('FileType', {{ command = 'setlocal indentkeys=o,O' }})
vim.o.swapfile, vim.o.shadafile = false, 'NONE'
vim.opt.runtimepath:prepend('{plugin}')
vim.cmd.runtime('plugin/redraft.lua')
vim.notify = function(message) vim.api.nvim_echo({{ {{ message }} }}, true, {{}}) end
{setup.replace("COMMAND", command).replace("SETTINGS", ALONE)}
"""


def editor_environment(folder: Path) -> dict[str, str]:
    """The editor writes only below ``folder``."""
    names = ("CONFIG_HOME", "DATA_HOME", "STATE_HOME", "CACHE_HOME")
    return {f"XDG_{name}": str(folder / name.lower()) for name in names}
