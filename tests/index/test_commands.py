"""``redraft index`` and ``redraft corpus build``, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lsp_server.commands.cli.main import main
from lsp_server.editor.daemon import control
from lsp_server.editor.hub.hub import Hub
from lsp_server.index.client import WorkspaceState
from repo_index.indexer import Indexer
from repo_index.source_tree import FolderTree
from repo_index.store import workspace_store
from repo_index.tokens import TextTokenizer


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path / "data"))
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.py").write_text("a = 1\n")
    (work / "b.py").write_text("b = 2\n")
    (work / ".env").write_text("A=1\n")
    return work


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_index_builds_and_refreshes(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", str(workspace), "--json"]) == 0
    first = printed(capsys)
    assert (first["files"], first["indexed"], first["complete"]) == (2, 2, True)
    (workspace / "b.py").unlink()
    assert main(["index", str(workspace), "--json"]) == 0
    second = printed(capsys)
    assert (second["files"], second["indexed"], second["removed"]) == (1, 0, 1)
    assert Path(second["folder"]).is_dir()
    assert main(["index", str(workspace), "--rebuild"]) == 0
    assert capsys.readouterr().out.startswith("1 files, ")


def test_index_explains(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explain = ["index", str(workspace), "--explain", "a.py", "--explain", ".env", "--json"]
    assert main(explain) == 0
    assert "next refresh" in printed(capsys)["a.py"]
    assert main(["index", str(workspace)]) == 0
    capsys.readouterr()
    assert main([*explain, "--explain", str(workspace / "b.py"), "--explain", "../x"]) == 0
    lines = printed(capsys)
    assert lines["a.py"] == "a.py: indexed"
    assert lines[str(workspace / "b.py")] == "b.py: indexed"
    assert "secret" in lines[".env"]
    assert "outside" in lines["../x"]


def test_index_leaves_a_store_to_the_server_that_keeps_it(
    workspace: Path, tokenizer: TextTokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    store = workspace_store(workspace, tokenizer.sha256)
    server = Indexer(FolderTree(workspace), store, tokenizer)
    server.refresh()
    assert main(["index", str(workspace), "--json"]) == 0
    document = printed(capsys)
    assert (document["files"], document["kept_by_a_running_server"]) == (2, True)
    assert main(["index", str(workspace), "--explain", "a.py"]) == 0
    assert capsys.readouterr().out == "a.py: indexed\n"
    server.close()


def test_wrong_use_is_said_in_one_line(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["index", str(workspace / "none")],
        ["corpus", "build"],
        ["corpus", "build", str(workspace / "none")],
        ["corpus", "build", "--environment", str(workspace)],
        ["index", str(workspace), "--model", str(workspace)],
    ):
        assert main(command) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("redraft: ")
        assert said.err.count("\n") == 1


def test_corpus_builds(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["corpus", "build", str(workspace), "--json"]) == 0
    document = printed(capsys)
    assert (document["files"], document["complete"]) == (2, True)
    (workspace / "note.txt").write_text("text\n")
    assert main(["corpus", "build", str(workspace), "--all-files", "--json"]) == 0
    assert printed(capsys)["files"] == 3


def test_status_shows_where_the_stores_are_and_how_large(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = WorkspaceState("/work", "", "ready", "only looked through", 2, 30, 2, 2)
    state.store, state.bytes = "/stores/work", 1_200_000
    state.common, state.common_bytes = "/stores/common", 34_500_000
    hub = Hub()
    hub.indexer.workspaces["/work", ""] = state
    monkeypatch.setattr(control, "ask_daemon", lambda _: hub.status())
    assert main(["status"]) == 0
    page = capsys.readouterr().out
    assert "/work: ready, 2 files, 30 tokens" in page
    assert "only looked through" in page
    assert "store /stores/work, 1.2 MB" in page
    assert "store /stores/common, 34.5 MB" in page
