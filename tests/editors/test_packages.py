"""The clients as they are handed out: the packed extension, and the plugin's Lua."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from drive_neovim import PLUGIN
from installed import CLIENTS, Installed

pytestmark = pytest.mark.editors

LARGEST_EXTENSION_BYTES = 300_000
LARGEST_PICTURE_BYTES = 300_000


def test_extension_is_small_and_whole(installed: Installed) -> None:
    with zipfile.ZipFile(installed.vsix) as archive:
        names = set(archive.namelist())
        own = [one for one in archive.infolist() if "/server/" not in one.filename]
        assert sum(one.compress_size for one in own) <= LARGEST_EXTENSION_BYTES
        manifest = json.loads(archive.read("extension/package.json"))
    assert f"extension/{manifest['main'].removeprefix('./')}" in names
    assert f"extension/{manifest['icon']}" in names
    steps = manifest["contributes"]["walkthroughs"][0]["steps"]
    assert {f"extension/{step['media']['markdown']}" for step in steps} <= names
    assert "extension/LICENSE.txt" in names
    assert not [name for name in names if "node_modules" in name or name.endswith(".ts")]
    assert "enabledApiProposals" not in manifest


def test_extension_reaches_the_network_by_nothing(installed: Installed) -> None:
    """The client library can speak through sockets too; this extension speaks through pipes."""
    with zipfile.ZipFile(installed.vsix) as archive:
        code = archive.read("extension/dist/extension.js").decode()
    modules = {name.removeprefix("node:") for name in re.findall(r'require\("([^"]+)"\)', code)}
    assert "child_process" in modules
    assert not modules & {"http", "https", "http2", "tls", "dns", "dgram", "inspector"}
    assert not re.findall(r"\bfetch\(|XMLHttpRequest|WebSocket|EventSource", code)
    sources = "".join(path.read_text() for path in (CLIENTS / "vscode/src").glob("*.ts"))
    assert "TransportKind.stdio" in sources
    assert not re.findall(r"TransportKind\.(?!stdio)|node:net", sources)


def test_plugin_reaches_the_network_by_nothing() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in PLUGIN.rglob("*.lua"))
    assert "vim.lsp.start" in sources
    assert not re.findall(
        r"new_tcp|new_udp|getaddrinfo|sockconnect|rpc\.connect|vim\.net|curl", sources
    )


def luacheck_environment(installed: Installed) -> dict[str, str]:
    folder = installed.folder / "luacheck/usr"
    library = next((folder / "lib").glob("*/lua/5.1"))
    share = folder / "share/lua/5.1"
    return {
        **os.environ,
        "LUA_PATH": f"{share}/?.lua;{share}/?/init.lua",
        "LUA_CPATH": f"{library}/?.so",
    }


def test_lua_has_no_warning(installed: Installed) -> None:
    result = subprocess.run(
        [installed.neovim, "-l", installed.folder / "luacheck/usr/bin/luacheck", "--no-color", "."],
        cwd=PLUGIN, env=luacheck_environment(installed),
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("version", ["0.12", "0.11", "0.10"])
def test_every_module_loads_and_the_help_has_its_tags(
    installed: Installed, version: str, tmp_path: Path
) -> None:
    binary = installed.neovim_of(version)
    modules = [f"redraft.{file.stem}" for file in sorted((PLUGIN / "lua/redraft").glob("*.lua"))]
    loaded = "\n".join(
        f"require('{name.removesuffix('.init')}')" for name in modules if not name.endswith("types")
    )
    for folder in ("doc", "plugin"):
        shutil.copytree(PLUGIN / folder, tmp_path / folder)
    (tmp_path / "doc/tags").unlink(missing_ok=True)
    script = tmp_path / "load.lua"
    script.write_text(
        f"vim.opt.runtimepath:prepend('{PLUGIN}')\n{loaded}\n"
        f"vim.cmd.source('{tmp_path}/plugin/redraft.lua')\n"
        "assert(vim.fn.exists(':Redraft') == 2)\n"
        f"assert(loadfile('{PLUGIN}/lsp/redraft.lua'))\n"
        f"vim.opt.runtimepath:append('{tmp_path}')\n"
        "for _, tag in ipairs({ 'redraft', 'redraft-setup', ':Redraft', 'RedraftStatus' }) do\n"
        "  vim.cmd.help(tag)\n"
        "  assert(vim.fn.expand('%:t') == 'redraft.txt', tag)\n"
        "end\n",
        encoding="utf-8",
    )
    result = subprocess.run(
        [binary, "--clean", "-l", script],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


def test_pictures_of_the_readme_are_small() -> None:
    pictures = list((CLIENTS / "media").glob("*.png"))
    assert pictures
    assert all(picture.stat().st_size <= LARGEST_PICTURE_BYTES for picture in pictures)
