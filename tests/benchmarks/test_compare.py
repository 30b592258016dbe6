"""The page of all drafting systems: its table by hand, and one run of it on three small cases."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lsp_server.bench import compare
from lsp_server.cli import main

EDIT = {
    "id": "rename",
    "instruction": "Rename low to least.",
    "before": "def clamp(value, low):\n    return max(value, low)\n",
    "after": "def clamp(value, least):\n    return max(value, least)\n",
}


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
        "model": "embedded",
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
        "edits": document(),
    }
    text = compare.page(documents, ["plain", "rest", "sdsat", "other"])
    table, *notes = text.split("\n\n")
    lines = table.splitlines()
    assert lines[2] == "| plain |" + " 2.50 · 1234 (1.99 ×) |" * 3
    assert lines[3] == "| rest | – | not here | – |"
    assert lines[4] == "| sdsat | – | 2.50 · 1234 (1.99 ×), 2 of 3 texts as plain | – |"
    assert lines[5] == "| other | – | – | – |"
    assert "fp32 (threads: 1), transformers' methods in bf16 (threads: 2); fastest" in notes[0]
    assert "redraft is 1.50 × rest, the best peer." in notes[0]
    assert "On the 2 texts with at most 20 %" in notes[0]
    assert "2.50 tokens/forward and is 1.25 × the fastest plain decoding." in notes[0]
    assert notes[1].startswith(
        "run-on: 3 cases of `cases.jsonl`, at most 64 tokens, 60 tokens (20 %"
    )
    assert notes[1].endswith("600 tokens/s (plain bf16).")
    assert "rest: rest needs a package." in notes
    assert "other: no bench knows this method.\n" in notes


@pytest.mark.timeout(300)
def test_every_column_in_one_run(
    cases: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "draftretriever", None)
    monkeypatch.delenv("REDRAFT_REST_PYTHON", raising=False)
    folder = cases.parent
    text = cases.read_text("utf-8")
    for column in compare.COLUMNS:
        (folder / column.file).write_text(
            json.dumps(EDIT) + "\n" if column.bench == "edit" else text, "utf-8"
        )
    out, page = folder / "page.json", folder / "page.md"
    rows = "plain,hf-generate,rest,fastcoder,efficientedit,redraft"
    options = ["--rows", rows, "--limit", "1", "--max-tokens", "12", "--common", "none"]
    files = ["--cases", str(folder), "--json", str(out), "--markdown", str(page)]
    assert main(["bench", "compare", *files, *options, "--threads", "1", "--dtype", "fp32"]) == 0
    assert capsys.readouterr().out == page.read_text("utf-8")
    documents = json.loads(out.read_text("utf-8"))
    assert list(documents) == [column.heading for column in compare.COLUMNS]
    for heading, document in documents.items():
        methods = document["methods"]
        assert methods["redraft"]["identical"] == methods["redraft"]["cases"] == 1
        assert methods["hf-generate"]["identical"] == 1
        expected = "efficientedit" if heading == "edits" else "fastcoder"
        assert methods[expected]["identical"] == 1
    assert "draftretriever" in documents["infilling"]["methods"]["rest"]["unavailable"]
    assert documents["completion, run-on"]["methods"]["plain"]["tokens"] == 12


def test_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "compare", "--cases", str(tmp_path / "nowhere")]) == 1
    assert "is no folder" in capsys.readouterr().err
    assert main(["bench", "compare", "--cases", str(tmp_path), "--rows", "unheard"]) == 1
    assert "unheard: no such method" in capsys.readouterr().err
