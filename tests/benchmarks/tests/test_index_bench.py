"""``index``: its document, missing peers, wrong use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import main
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
    few = ["--lookups", "60", "--saves", "3", "--edits", "5", "--files", "60"]
    sizes = ["--synthetic-tokens", "60000", "--common-tokens", "30000"]
    repository = ["--repo", str(workspace)]
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
    assert sorted(path.name for path in workspace.iterdir()) == [".env", "a.py", "b.py", "long.py"]
