"""``redraft edit``: ranges, diffs, and files that are replaced in one step."""

from __future__ import annotations

import json
import os
import stat
from types import SimpleNamespace
from typing import ClassVar

import pytest

from lsp_server.commands.cli.main import main
from lsp_server.engine import service as engine_service
from lsp_server.shared.contract.jobs import JobResult
from lsp_server.shared.contract.options import EngineOptions


class Answering:
    """Stands for the engine: upper-cases the selection, or says what it is told to."""

    answer: str | None = None
    jobs: ClassVar[list] = []
    options: ClassVar[EngineOptions] = EngineOptions()

    def __init__(self, options) -> None:
        Answering.options = options

    def load(self, told) -> None:
        told("loading")

    def close(self) -> None:
        pass

    def status(self):
        return SimpleNamespace(notice="it has seen better days")

    def write(self, job):
        Answering.jobs.append(job)
        text = job.selection.upper() if self.answer is None else self.answer
        return JobResult(text, [], 5, 2, 0.1, 0.1, {"original": 4, "model": 1}, "end")


@pytest.fixture
def engine(monkeypatch):
    monkeypatch.setattr(engine_service, "EngineService", Answering)
    monkeypatch.setattr(Answering, "answer", None)
    monkeypatch.setattr(Answering, "jobs", [])
    return Answering


def edit(path, *options: str) -> int:
    return main(
        ["edit", str(path), "--instruction", "loud", "--no-index", "--model", "another", *options]
    )


def test_a_diff_is_printed_and_the_file_left_alone(engine, tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    assert edit(path, "--lines", "2:2") == 0
    assert path.read_bytes() == b"one\r\ntwo\r\nthree\r\n"
    out, told = capsys.readouterr()
    lines = out.splitlines()
    assert "-two" in lines
    assert "+TWO" in lines
    assert "note: it has seen better days" in told
    assert engine.jobs[0].selection == "two"
    assert engine.jobs[0].before == "one\r\n"


def test_writing_keeps_mode_and_line_ends(engine, tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"one\r\ntwo\nthree")
    path.chmod(0o640)
    assert edit(path, "--lines", "1:3", "--write", "--json") == 0
    assert path.read_bytes() == b"ONE\r\nTWO\nTHREE"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    document = json.loads(capsys.readouterr().out)
    assert document["written"] is True
    assert document["text"] == "ONE\r\nTWO\nTHREE"
    assert document["tokens"] == 5
    assert "+TWO" in document["diff"]
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_a_file_that_changed_meanwhile_is_not_overwritten(engine, tmp_path, capsys, monkeypatch):
    path = tmp_path / "notes.txt"
    path.write_text("one\n")
    answer = engine.write

    def meanwhile(self, job):
        path.write_text("one, and more\n")
        return answer(self, job)

    monkeypatch.setattr(engine, "write", meanwhile)
    assert edit(path, "--lines", "1:1", "--write") != 0
    assert path.read_text() == "one, and more\n"
    assert "changed while" in capsys.readouterr().err


def test_an_answer_that_does_not_parse_is_refused(engine, tmp_path, capsys):
    path = tmp_path / "code.py"
    path.write_text("def f():\n    return 1\n")
    engine.answer = "def f(:\n    return 1\n"
    assert edit(path, "--lines", "1:2", "--write") != 0
    assert path.read_text() == "def f():\n    return 1\n"
    assert "does not parse" in capsys.readouterr().err


def test_a_rename_goes_beyond_the_lines_and_other_files_are_told(engine, tmp_path, capsys):
    path = tmp_path / "shapes.py"
    path.write_text("class Rect:\n    pass\n\n\nunit = Rect()\n")
    (tmp_path / "cart.py").write_text("from shapes import Rect\n")
    asked = ["--instruction", "rename Rect to Box", "--workspace", str(tmp_path)]
    assert main(["edit", str(path), "--lines", "1:2", "--write", "--model", "another", *asked]) == 0
    assert path.read_text() == "class Box:\n    pass\n\n\nunit = Box()\n"
    assert "cart.py line 1: Rect stays in other files" in capsys.readouterr().err.replace("\n", " ")
    assert not engine.jobs


@pytest.mark.parametrize("lines", ["0:1", "2:1", "1:9", "a:b", ":", "1:"])
def test_wrong_ranges(engine, tmp_path, capsys, lines):
    path = tmp_path / "notes.txt"
    path.write_text("one\ntwo\n")
    code = edit(path, "--lines", lines)
    assert (code == 0) == (lines == "1:")
    assert len(capsys.readouterr().err.strip().splitlines()) == 1 or code == 0


def test_blank_lines_binary_files_and_missing_ones(engine, tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_text("\n\n")
    assert edit(path, "--lines", "1:2") != 0
    path.write_bytes(b"\xff\xfe\x00")
    assert edit(path, "--lines", "1:1") != 0
    assert edit(tmp_path / "none.txt", "--lines", "1:1") != 0
    assert len(capsys.readouterr().err.strip().splitlines()) == 3


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        (b"one\rtwo\rthree\r", "2:2", b"one\rTWO\rthree\r"),
        (b"one\rtwo\rthree", "3:3", b"one\rtwo\rTHREE"),
        (b"one\rtwo\nthree\r\nfour\r", "1:4", b"ONE\rTWO\nTHREE\r\nFOUR\r"),
        (b"one\r\rthree\r", "1:3", b"ONE\r\rTHREE\r"),
    ],
)
def test_lone_carriage_returns_end_lines(engine, tmp_path, text, lines, expected):
    path = tmp_path / "notes.txt"
    path.write_bytes(text)
    assert edit(path, "--lines", lines, "--write") == 0
    assert path.read_bytes() == expected


def test_an_empty_file_is_told_as_one(engine, tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"")
    assert edit(path, "--lines", "1:1") != 0
    assert capsys.readouterr().err == f"redraft: {path} is empty; there is nothing to edit\n"


def test_of_a_file_with_secrets_the_model_is_told_the_lines_alone(engine, tmp_path, capsys):
    path = tmp_path / ".env"
    path.write_text("A=one\nB=two\nC=three\n")
    assert main(["edit", str(path), "--instruction", "loud", "--model", "m", "--lines", "2:2"]) == 0
    (job,) = engine.jobs
    assert (job.before, job.after, job.workspace) == ("", "", "")
    shown = capsys.readouterr()
    assert "+B=TWO" in shown.out
    assert "held back" in shown.err


def test_verification_by_entropy_is_told_to_the_engine(engine, tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_text("one\ntwo\n")
    drafted = ("--lines", "2:2", "--draft-model", "small")
    assert edit(path, *drafted) == 0
    assert edit(path, *drafted, "--verification", "entropy") == 0
    assert edit(path, *drafted, "--verification", "entropy", "--entropy-k", "8") == 0
    assert [job.entropy_k for job in engine.jobs] == [0, 3, 8]
    without = ("--lines", "2:2", "--verification", "entropy")
    for wrong, said in (
        (without, "give --draft-model PATH"),
        ((*drafted, "--entropy-k", "1"), "--entropy-k 1 is not in 2 to 50"),
        ((*drafted, "--entropy-k", "51"), "--entropy-k 51 is not in 2 to 50"),
    ):
        capsys.readouterr()
        assert edit(path, *wrong) == 1
        assert said in capsys.readouterr().err
    assert len(engine.jobs) == 3


@pytest.mark.parametrize(("written", "threads"), [([], 0), (["0"], 0), (["2"], 2)])
def test_no_threads_are_the_fastest_number(engine, tmp_path, written, threads):
    path = tmp_path / "notes.txt"
    path.write_text("one\n")
    assert edit(path, "--lines", "1:1", *(["--threads", *written] if written else [])) == 0
    assert engine.options.threads == threads
