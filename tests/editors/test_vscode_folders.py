"""Folders of every kind in VS Code: untrusted, several at once, notebooks; and no server at all."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest
from browser import Browser
from code_server import CodeServer
from drive_vscode import Window
from installed import Installed, Server
from prepared import prepared_cell, prepared_place
from projects import make_project

pytestmark = pytest.mark.editors


def test_several_folders_of_a_workspace(
    code_server: CodeServer, browser: Browser, server: Server, tmp_path: Path
) -> None:
    one, two = make_project(tmp_path / "one"), make_project(tmp_path / "two")
    place = prepared_place(server, two, "second.py", after="")
    (two / "second.py").write_text(place.text, encoding="utf-8")
    both = tmp_path / "both.code-workspace"
    both.write_text(json.dumps({"folders": [{"path": "one"}, {"path": "two"}]}), encoding="utf-8")
    window = Window(code_server, browser, both)
    window.expand("two")
    window.open("second.py")
    window.type(place.key)
    window.wait_ghost()
    known = {workspace["folder"] for workspace in server.status()["workspaces"]}
    assert {str(one), str(two)} <= known
    window.page.close()


def test_cell_of_a_notebook(
    code_server: CodeServer, browser: Browser, server: Server, tmp_path: Path
) -> None:
    folder = make_project(tmp_path / "project")
    above, place = prepared_cell(server, folder, "notes.ipynb")
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None,
         "source": text.splitlines(keepends=True)}
        for text in (above, place.text)
    ]  # fmt: skip
    notebook = {
        "cells": cells,
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (folder / "notes.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    window = Window(code_server, browser, folder)
    window.open_tab("notes.ipynb")
    cell = window.page.locator(".notebookOverlay .cell-editor-container .monaco-editor .view-lines")
    window.wait(lambda: cell.count() >= 2, "cells")
    cell.nth(1).click()
    window.keys("Control+End")
    window.type(place.key)
    window.wait_ghost()
    window.page.close()


def shell_with_path(home: Path, path: str) -> dict[str, str]:
    """Surroundings in which PATH is what a test says, and nothing of the user's own.

    VS Code asks the user's shell for it, and takes what it has where the shell does not answer.
    """
    home.mkdir()
    (home / ".bash_profile").write_text(f'export PATH="{path}"\n', encoding="utf-8")
    return {"HOME": str(home), "SHELL": "/bin/bash", "PATH": path}


def test_untrusted_folder_is_served_with_the_users_own_server(
    installed: Installed, server: Server, browser: Browser, tmp_path: Path
) -> None:
    """The user's own is on PATH here; what the folder names is not even looked at."""
    on_path = shell_with_path(tmp_path / "home", f"{server.command.parent}:/usr/bin:/bin")
    folder = make_project(tmp_path / "untrusted")
    (folder / ".vscode").mkdir()
    settings = {"redraft.serverPath": "/bin/false", "redraft.model.path": "/nowhere"}
    (folder / ".vscode/settings.json").write_text(json.dumps(settings), encoding="utf-8")
    code_server = CodeServer(
        installed, server, tmp_path / "code-server", trusted=False,
        environment=on_path,
        **{"redraft.serverPath": "", "security.workspace.trust.startupPrompt": "never"},
    )  # fmt: skip
    try:
        window = Window(code_server, browser, folder)
        window.open("orders.py")
        window.page.locator(".statusbar-item", has_text="Restricted Mode").first.wait_for()
        assert window.state() in ("ready", "indexing")
        assert "/nowhere" not in window.summary()
        window.page.close()
    finally:
        code_server.close()


def wheel_of(server: Server, folder: Path) -> Path:
    """A package ``redraft`` whose only content is the command of the tests' server."""
    path = folder / "redraft-0.1.0-py3-none-any.whl"
    info = "redraft-0.1.0.dist-info"
    files = {
        "redraft-0.1.0.data/scripts/redraft": f"#!/bin/sh\nexec '{server.command}' \"$@\"\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: redraft\nVersion: 0.1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100755 << 16  # a command must be executable
            archive.writestr(entry, text)
    return path


def test_private_environment_is_made_when_the_user_agrees(
    installed: Installed, server: Server, browser: Browser, tmp_path: Path
) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "python3").symlink_to(sys.executable)
    path = f"{commands}:/usr/bin:/bin"
    code_server = CodeServer(
        installed, server, tmp_path / "code-server",
        environment={**shell_with_path(tmp_path / "home", path), "PIP_NO_INDEX": "1"},
        **{
            "redraft.serverPath": "",
            "redraft.serverPackage": str(wheel_of(server, tmp_path)),
        },
    )  # fmt: skip
    try:
        window = Window(code_server, browser, make_project(tmp_path / "project"))
        offer = window.toast("Redraft's server was not found")
        offer.wait_for()
        assert window.state() == "error"
        offer.get_by_role("button", name="Install").click()
        window.wait_running()
        made = list((tmp_path / "code-server").rglob("server/bin/redraft"))
        assert len(made) == 1
        window.page.close()
    finally:
        code_server.close()
