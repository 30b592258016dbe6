"""Settings stand in one place: what VS Code shows is made from the server's own list."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from installed import CLIENTS, ROOT

MANIFEST = CLIENTS / "vscode/package.json"


def test_manifest_and_page_have_the_servers_settings() -> None:
    script = CLIENTS / "vscode/scripts/settings.py"
    result = subprocess.run(
        [sys.executable, str(script), "--check"],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


def settings_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """The settings of all groups."""
    return {
        name: one
        for section in manifest["contributes"]["configuration"]
        for name, one in section["properties"].items()
    }


def test_settings_are_in_groups_in_an_order() -> None:
    sections = json.loads(MANIFEST.read_text(encoding="utf-8"))["contributes"]["configuration"]
    assert [section["order"] for section in sections] == [*range(len(sections))]
    assert len({section["title"] for section in sections}) == len(sections) > 5
    for section in sections:
        orders = [one["order"] for one in section["properties"].values()]
        assert orders == [*range(len(orders))]


def test_untrusted_folders_choose_no_paths() -> None:
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    restricted = manifest["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    properties = settings_of(manifest)
    assert set(restricted) <= set(properties)
    models = {name for name in properties if name.endswith((".path", ".model", ".draftModel"))}
    assert len(models) == 6
    assert {"redraft.serverPath", "redraft.server.url", *models} <= set(restricted)
    assert properties["redraft.serverPath"]["scope"] == "machine"


def test_no_workspace_sets_a_server_and_no_file_holds_its_key() -> None:
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    properties = settings_of(manifest)
    own = {name: one["scope"] for name, one in properties.items() if ".server." in name}
    assert "redraft.server.url" in own
    assert set(own.values()) == {"machine"}
    assert "redraft.server.key" not in properties


def test_every_command_of_a_menu_or_key_is_declared() -> None:
    contributes = json.loads(MANIFEST.read_text(encoding="utf-8"))["contributes"]
    declared = {command["command"] for command in contributes["commands"]}
    keys = contributes["keybindings"]
    used = {key["command"] for key in keys if "args" not in key}
    used |= {key["args"]["commands"][-1] for key in keys if "args" in key}
    used |= {item["command"] for menu in contributes["menus"].values() for item in menu}
    assert used <= declared
    source = (CLIENTS / "vscode/src/extension.ts").read_text(encoding="utf-8")
    assert all(f'"{command}":' in source for command in declared)


def test_lockfile_names_no_host() -> None:
    lock = json.loads((CLIENTS / "vscode/package-lock.json").read_text(encoding="utf-8"))
    assert not [name for name, package in lock["packages"].items() if "resolved" in package]
