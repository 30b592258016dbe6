"""What a first start calls is compiled while a model is fetched."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from python_environments import use_modules_of

from lsp_server.commands.cli import fetch_and_compile as subject
from lsp_server.engine.compiling import CompileTask
from lsp_server.models.fetching import FetchFailed
from lsp_server.models.manifest import DEFAULT, OfferedModel, find_offered, read_manifest
from lsp_server.models.progress import Report

WAIT_S = 120.0
COMPILES = """
import sys, time
from pathlib import Path

folder = Path(sys.argv[1])
(folder / "compiling").touch()
while not (folder / "arrived").exists():
    time.sleep(0.01)
(folder / "compiled").touch()
"""


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CompileTask:
    """Its process ends once the model has arrived."""
    (tmp_path / "compiles.py").write_text(COMPILES)
    use_modules_of(tmp_path, monkeypatch)
    made = CompileTask("part", "compiles", (str(tmp_path),), 1.0)
    monkeypatch.setattr(subject, "parts_for_any_model", lambda _tokens: [made])
    return made


def offered() -> OfferedModel:
    return replace(find_offered(read_manifest(), DEFAULT))


def until_there(file: Path) -> None:
    ends = time.monotonic() + WAIT_S
    while not file.exists():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_both_are_done_at_once_and_told_as_one(
    task: CompileTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(_model: OfferedModel, report: Report, _source: Path | None) -> Path:
        until_there(tmp_path / "compiling")
        report("fetching", 1, 2)
        report("fetching", 2, 2)
        (tmp_path / "arrived").touch()
        return tmp_path / "no-model.gguf"

    monkeypatch.setattr(subject, "fetch", fetch)
    told: list[tuple[str, int, int]] = []
    subject.fetch_and_compile(offered(), lambda *said: told.append(said))
    assert (tmp_path / "compiled").exists()
    assert told[:3] == [("compiling", 0, 1), ("fetching", 1, 2), ("fetching", 2, 2)]
    assert told[-1] == ("compiling", 1, 1)


def test_nothing_compiles_on_where_the_model_does_not_come(
    task: CompileTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(_model: OfferedModel, _report: Report, _source: Path | None) -> Path:
        until_there(tmp_path / "compiling")
        raise FetchFailed("no network")

    monkeypatch.setattr(subject, "fetch", fetch)
    with pytest.raises(FetchFailed):
        subject.fetch_and_compile(offered(), lambda *_said: None)
    (tmp_path / "arrived").touch()
    time.sleep(0.1)
    assert not (tmp_path / "compiled").exists()
