"""``redraft index``, ``redraft corpus build`` and ``redraft bench index``, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lsp_server.bench import index, index_peers
from lsp_server.cli.main import main
from lsp_server.daemon import control
from lsp_server.daemon.hub import Hub
from lsp_server.index.client import WorkspaceState
from repo_index.indexer import Indexer
from repo_index.source_tree import FolderTree
from repo_index.store import workspace_store
from repo_index.tokens import TextTokenizer
from tests.index.conftest import source_text


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
    server = Indexer.open(FolderTree(workspace), store, tokenizer)
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
        ["bench", "index", "--repo", str(workspace / "none")],
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


def test_bench_measures_what_it_promises(workspace: Path, tmp_path: Path) -> None:
    (workspace / "long.py").write_text(source_text()[:40_000])
    out = tmp_path / "out.json"
    few = ["--lookups", "60", "--saves", "3", "--edits", "5", "--files", "60", "--skip", "rest"]
    sizes = ["--synthetic-tokens", "60000", "--common-tokens", "30000"]
    repository = ["--repo", str(workspace), "--skip", "suffix-decoding"]
    assert main(["bench", "index", *repository, *few, *sizes, "--json", str(out)]) == 0
    document = json.loads(out.read_text())
    fields = (
        *("build_s", "tokens_per_s", "tokenizer_tokens_per_s", "lookup_us_p50", "lookup_us_p95"),
        *("save_visible_ms_p50", "save_visible_ms_p95", "edit_visible_ms_p95", "reopen_s"),
        *("bytes_per_token", "resident_mb"),
    )
    assert all(document[field] > 0 for field in fields)
    assert 50_000 < document["tokens"] < 90_000
    assert document["mapped_tokens"] > document["tokens"] + 30_000
    assert document["bytes_per_token"] < 12
    assert document["peers"] == {}
    assert sorted(path.name for path in workspace.iterdir()) == [".env", "a.py", "b.py", "long.py"]


def test_a_missing_peer_is_said_after_the_rest_was_measured(
    workspace: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index, "_child", lambda *_: {"unavailable": "rest needs its package"})
    monkeypatch.setattr(index._Bench, "measure", measured_without_peer)
    out = tmp_path / "out.json"
    assert main(["bench", "index", "--repo", str(workspace), "--json", str(out)]) == 1
    assert "rest cannot be run (rest needs its package)" in capsys.readouterr().err
    assert json.loads(out.read_text())["lookup_us_p50"] == 1.0


def measured_without_peer(bench: Any) -> dict[str, Any]:
    return {"lookup_us_p50": 1.0, "peers": {"rest": index._child("", "rest")}}


@pytest.mark.parametrize("name", ["rest", "suffix-decoding"])
def test_peers_are_measured_or_say_what_they_need(name: str, tmp_path: Path) -> None:
    """Whichever is installed: both answers have a form that the bench can show."""
    ids = np.arange(600, dtype=np.int32) % 50
    files, contexts = tmp_path / "files.npz", tmp_path / "contexts.npy"
    np.savez(files, tokens=ids, lengths=[400, 200], vocabulary=60)
    np.save(contexts, np.stack([ids[i : i + 16] for i in range(20)]))
    found = index_peers.measure(name, files, contexts)
    if "unavailable" in found:
        assert "accel/peers/README.md" in found["unavailable"]
    else:
        assert found["tokens"] == 600
        assert 0 < found["lookup_us_p50"] <= found["lookup_us_p95"]
        assert found["build_s"] > 0


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
