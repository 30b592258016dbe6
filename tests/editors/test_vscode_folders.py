"""Folders of every kind in VS Code: untrusted, several at once, notebooks; and no server at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import Browser
from code_server import CodeServer
from drive_vscode import Window
from installed import Installed, Server
from packed_server import PackedServer, proxy_of
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


@contextmanager
def without_a_server(
    installed: Installed, server: Server, tmp_path: Path, packed: PackedServer, *commands: Path
) -> Iterator[CodeServer]:
    """VS Code whose extension carries a small server, where PATH holds some commands alone."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for command in commands:
        (folder / command.name).symlink_to(command)
    path = f"{folder}:/usr/bin:/bin"
    vsix = packed.put_into(installed.vsix, tmp_path / "redraft.vsix")
    code_server = CodeServer(
        installed, server, tmp_path / "code-server", vsix=vsix,
        environment={**shell_with_path(tmp_path / "home", path), **packed.surroundings},
        **{"redraft.serverPath": ""},
    )  # fmt: skip
    try:
        yield code_server
    finally:
        code_server.close()


def test_the_servers_own_environment_is_made_when_the_user_agrees(
    installed: Installed, server: Server, browser: Browser, tmp_path: Path
) -> None:
    packed = PackedServer(tmp_path / "packed", script=proxy_of(server))
    uv = installed.folder / "python/bin/uv"
    project = make_project(tmp_path / "project")
    # What the folder holds leads nothing.
    (project / "uv.toml").write_text("[broken\n", encoding="utf-8")
    with without_a_server(installed, server, tmp_path, packed, uv) as code_server:
        window = Window(code_server, browser, project)
        offer = window.toast("Redraft's server was not found")
        offer.wait_for()
        assert window.state() == "inactive", "nothing went wrong"
        assert "98 MB" in offer.inner_text(), "what comes over the network"
        offer.get_by_role("button", name="Install Both", exact=True).click()
        window.wait(lambda: "installing the server" in window.summary(), "what is under way")
        window.wait_running()
        (chosen,) = (tmp_path / "code-server").rglob("server/current.json")
        told = json.loads(chosen.read_text(encoding="utf-8"))
        assert (told["version"], told["by"]) == ("0.1.0", "uv")
        assert list(chosen.parent.rglob("tiny_need.py"))
        assert not window.toast("The server at").count()
        window.page.close()


def test_an_older_server_is_told_and_upgraded(
    installed: Installed, server: Server, browser: Browser, tmp_path: Path
) -> None:
    """The one on PATH is older than the one that the extension carries."""
    packed = PackedServer(tmp_path / "packed", version="0.2.0", script=proxy_of(server, "0.2.0"))
    uv = installed.folder / "python/bin/uv"
    with without_a_server(installed, server, tmp_path, packed, uv, server.command) as code_server:
        window = Window(code_server, browser, make_project(tmp_path / "project"))
        offer = window.toast("is version 0.1.0, older than this extension's")
        offer.wait_for()
        offer.get_by_role("button", name="Install", exact=True).click()
        window.wait(lambda: list((tmp_path / "code-server").rglob("current.json")), "upgrade")
        window.wait_running()
        assert len(list((tmp_path / "code-server").rglob("bin/redraft"))) == 1
        window.page.wait_for_timeout(1000)
        assert not window.toast("The server at").count()
        window.page.close()
