"""The page of all drafting systems: its table by hand, and one run of it on three small cases."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.__main__ import main
from tests.benchmarks.compare import command as compare
from tests.benchmarks.compare import page as compare_page
from tests.benchmarks.published.fastcoder import FastCoderDrafter


def fields(**changes: Any) -> dict[str, Any]:
    figures = {
        "tokens_per_forward": 2.5,
        "tokens_per_s": 1234.5,
        "speedup": 1.987,
        "identical": 3,
        "cases": 3,
        "tokens": 60,
        "repeated_16grams": 0.2,
    }
    return figures | changes


def document(**methods: Any) -> dict[str, Any]:
    return {
        "methods": {"plain": fields(), **methods},
        "plain_decoding": {"plain bf16": {"tokens_per_s": 600.4}},
        "fastest_plain": "plain bf16",
        "cases_file": "cases.jsonl",
        "model": "small",
        "bench": "completion",
        "dtype": "fp32",
        "options": {"max_tokens": 64, "stop": "length"},
    }


def test_the_page_by_hand() -> None:
    ours = fields(over_best_peer=1.5, speedup=1.25)
    documents = {
        "infilling": document(redraft=ours)
        | {"threads": 1, "transformers": {"dtype": "bf16", "threads": 2}}
        | {"best_peer": "rest", "hardly_repeated": {"cases": 2, "methods": {"redraft": ours}}},
        "run-on": document(rest={"unavailable": "rest needs a package"}, sdsat=fields(identical=2)),
        "edits": document() | {"bench": "edit"},
        "broken": {"failed": "BenchError: no cases", "bench": "completion"},
    }
    text = compare_page.written(documents, ["plain", "rest", "sdsat", "efficientedit"])
    table, *notes = text.split("\n\n")
    lines = table.splitlines()
    assert lines[2] == "| plain |" + " 2.50 · 1234 (1.99 ×) |" * 3 + " failed |"
    no = "does not apply"
    assert lines[3] == f"| rest | {no} | not here | {no} | failed |"
    assert (
        lines[4]
        == f"| sdsat | {no} | 2.50 · 1234 (1.99 ×), 2 of 3 texts as plain | {no} | failed |"
    )
    assert lines[5] == f"| efficientedit | {no} | {no} | {no} | failed |"
    assert "fp32 (threads: 1), transformers' methods in bf16 (threads: 2); fastest" in notes[0]
    assert "redraft is 1.50 × rest, the best peer." in notes[0]
    assert "On the 2 texts with at most 20 %" in notes[0]
    assert "2.50 tokens/forward and is 1.25 × the fastest plain decoding." in notes[0]
    assert notes[1].startswith(
        "run-on: 3 cases of `cases.jsonl`, at most 64 tokens, 60 tokens (20 %"
    )
    assert notes[1].endswith("600 tokens/s (plain bf16).")
    assert "broken: failed, BenchError: no cases." in notes
    assert "rest not here: rest needs a package." in notes
    assert (
        "efficientedit does not apply to completion: reuses the code to be edited, and completion "
        "has none." in notes
    )


def test_time_in_pairs() -> None:
    documents = {"random": document(redraft=fields(pair_ratio=1.0234))}
    documents["random"]["methods"]["plain"]["pair_ratio"] = 1.0
    text = compare_page.written(documents, ["plain", "redraft"], pairs=True)
    assert "| redraft | 2.50 · 1234 (1.99 ×), time 1.023 |" in text
    assert "at most 1.05 is wanted" in text


def case_files(folder: Path, completion: str) -> None:
    """A file of cases for every column of completion."""
    for column in compare.PAGES["systems"].columns:
        if column.bench == "completion":
            (folder / column.file).write_text(completion, "utf-8")


def test_every_column_in_one_run(
    cases: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "draftretriever", None)
    monkeypatch.delenv("REDRAFT_REST_PYTHON", raising=False)
    folder = cases.parent
    case_files(folder, cases.read_text("utf-8"))
    out, page = folder / "page.json", folder / "page.md"

    def broken(drafter: Any, max_nodes: int) -> None:
        raise ValueError("a peer\nbroke")

    monkeypatch.setattr(FastCoderDrafter, "draft", broken)
    rows = "plain,hf-generate,rest,fastcoder,efficientedit,sdsat,redraft"
    options = ["--rows", rows, "--limit", "1", "--max-tokens", "12", "--common", "none"]
    files = ["--cases", str(folder), "--json", str(out), "--markdown", str(page)]
    assert main(["compare", *files, *options, "--threads", "1", "--dtype", "fp32"]) == 0
    assert capsys.readouterr().out == page.read_text("utf-8")
    documents = json.loads(out.read_text("utf-8"))
    assert list(documents) == [column.heading for column in compare.PAGES["systems"].columns]
    for heading, document in documents.items():
        methods = document["methods"]
        assert methods["redraft"]["identical"] == methods["redraft"]["cases"] == 1
        assert methods["hf-generate"]["identical"] == 1
        if heading == "edits":
            assert methods["efficientedit"]["identical"] == 1
        failed = methods["fastcoder"]["unavailable"]
        assert failed == "fastcoder failed (ValueError: a peer broke)"
        assert "adaptive tokens" in methods["sdsat"]["unavailable"]
    assert "draftretriever" in documents["infilling"]["methods"]["rest"]["unavailable"]
    assert documents["completion, run-on"]["methods"]["plain"]["tokens"] == 12


def test_a_column_that_cannot_be_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.json"
    options = ["--columns", "infilling", "--dtype", "fp32", "--json", str(out)]
    assert main(["compare", "--cases", str(tmp_path), *options]) == 1
    assert "infilling: failed, BenchError: " in capsys.readouterr().out
    assert list(json.loads(out.read_text("utf-8"))) == ["infilling"]


def test_other_pages(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case_files(cases.parent, cases.read_text("utf-8"))
    files = ["--cases", str(cases.parent), "--common", "none", "--dtype", "fp32"]
    small = ["--limit", "1", "--max-tokens", "8", "--threads", "1"]
    page = ["--page", "never-slower", "--columns", "random, temperature 1"]
    assert main(["compare", *files, *small, *page]) == 0
    printed = capsys.readouterr().out
    assert ", time " in printed
    assert " cases of `random`, to the reference's length, " in printed
    page = ["--page", "sampling", "--columns", "RepoEval, temperature 0.2"]
    assert main(["compare", *files, *small, *page, "--rows", "plain,redraft"]) == 0
    assert "from the left alone, to the reference's length" in capsys.readouterr().out


def test_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--cases", str(tmp_path / "nowhere")]) == 1
    assert "is no folder" in capsys.readouterr().err
    assert main(["compare", "--cases", str(tmp_path), "--rows", "unheard"]) == 1
    assert "unheard: no such method" in capsys.readouterr().err
    assert main(["compare", "--cases", str(tmp_path), "--columns", "unheard"]) == 1
    assert "is in no heading" in capsys.readouterr().err
