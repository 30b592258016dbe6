"""``index``: its document, missing peers, wrong use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks.__main__ import main
from tests.benchmarks.index import command as index
from tests.benchmarks.index import peers as index_peers
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


def test_a_missing_folder_is_said_in_one_line(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", "--repo", str(workspace / "none")]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("redraft: ")
    assert said.err.count("\n") == 1


def test_bench_measures_what_it_promises(workspace: Path, tmp_path: Path) -> None:
    (workspace / "long.py").write_text(source_text()[:40_000])
    out = tmp_path / "out.json"
    few = ["--lookups", "60", "--saves", "3", "--edits", "5", "--files", "60", "--skip", "rest"]
    sizes = ["--synthetic-tokens", "60000", "--common-tokens", "30000"]
    repository = ["--repo", str(workspace), "--skip", "suffix-decoding"]
    assert main(["index", *repository, *few, *sizes, "--json", str(out)]) == 0
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
    assert main(["index", "--repo", str(workspace), "--json", str(out)]) == 1
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
        assert "tests/benchmarks/peers/README.md" in found["unavailable"]
    else:
        assert found["tokens"] == 600
        assert 0 < found["lookup_us_p50"] <= found["lookup_us_p95"]
        assert found["build_s"] > 0
