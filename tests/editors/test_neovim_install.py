"""``:RedraftInstall``: the plugin's own server, where none is found or an older one runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from drive_neovim import PLUGIN, OpenNeovim
from installed import Installed, Server
from packed_server import PackedServer, proxy_of
from waiting import wait_for

pytestmark = pytest.mark.editors

CLIENT = """
local client = vim.lsp.get_clients({ name = 'redraft', bufnr = 0 })[1]
return client and client.initialized and client.config.cmd[1] or nil
"""


def released(packed: PackedServer, folder: Path) -> str:
    """Lua that uses the plugin as it is released: with a server."""
    plugin = folder / "plugin"
    shutil.copytree(PLUGIN, plugin, ignore=shutil.ignore_patterns("server"))
    shutil.copytree(packed.folder, plugin / "server")
    return f"vim.opt.runtimepath:prepend('{plugin}')\nrequire('redraft').setup({{}})"


def use_path(monkeypatch: pytest.MonkeyPatch, packed: PackedServer, *folders: Path) -> None:
    """What editors that are started find on PATH, and the folder that stands for a registry."""
    monkeypatch.setenv("PATH", ":".join([*map(str, folders), "/usr/bin", "/bin"]))
    for name, value in packed.surroundings.items():
        monkeypatch.setenv(name, value)


def test_the_server_is_installed_where_there_is_none(
    neovim: OpenNeovim, installed: Installed, server: Server, project: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    packed = PackedServer(tmp_path / "packed", script=proxy_of(server))
    use_path(monkeypatch, packed, installed.folder / "python/bin")
    editor = neovim(released(packed, tmp_path))
    assert "`redraft` was not found; :RedraftInstall installs it" in editor.messages()
    editor.rpc.command(f"edit {project / 'orders.py'}")
    editor.rpc.command("RedraftInstall")
    command = wait_for(lambda: editor.lua(CLIENT), "server of the plugin's own", 120)
    data = Path(editor.lua("return vim.fn.stdpath('data')"))
    assert Path(command).is_relative_to(data / "redraft/server")
    assert "redraft: done: redraft 0.1.0" in editor.messages()
    assert "is version" not in editor.messages()


def test_an_older_server_is_told_and_replaced(
    neovim: OpenNeovim, installed: Installed, server: Server, project: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    packed = PackedServer(tmp_path / "packed", version="0.2.0", script=proxy_of(server, "0.2.0"))
    use_path(monkeypatch, packed, installed.folder / "python/bin", server.command.parent)
    editor = neovim(released(packed, tmp_path))
    editor.open(project / "orders.py")
    told = "is version 0.1.0; this plugin's is 0.2.0, and :RedraftInstall installs it"
    wait_for(lambda: told in editor.messages().replace("\n", ""), "message")
    editor.rpc.command("RedraftInstall")
    wait_for(lambda: "redraft/server" in (editor.lua(CLIENT) or ""), "newer server", 120)


def test_one_that_cannot_be_installed_says_why(
    neovim: OpenNeovim, installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = PackedServer(tmp_path / "packed")
    packed.write_pins("0" * 64)
    use_path(monkeypatch, packed, installed.folder / "python/bin")
    editor = neovim(released(packed, tmp_path))
    editor.rpc.command("RedraftInstall")
    wait_for(lambda: "could not be installed" in editor.messages(), "message", 120)
    assert "hash" in editor.messages().lower()


def test_a_plugin_without_a_server_advises_what_it_can_do(
    neovim: OpenNeovim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    shutil.copytree(PLUGIN, tmp_path / "alone", ignore=shutil.ignore_patterns("server"))
    alone = f"vim.opt.runtimepath:prepend('{tmp_path / 'alone'}')\nrequire('redraft').setup({{}})"
    editor = neovim(alone)
    editor.rpc.command("checkhealth redraft")
    wait_for(lambda: "was not found" in editor.text, "health")
    assert "`pip install .` in a clone" in editor.text
    assert "RedraftInstall" not in editor.text + editor.messages()
