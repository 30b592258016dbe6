"""Completion drafting keeps its lead: on the frozen corpus, and on the measuring cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import case_files
import frozen_corpus

from tests.benchmarks.__main__ import main
from tests.benchmarks.training.acceptance import bodies_of

LIMIT = 24
FLOOR, SMALL_FLOOR = 3.2, 2.4
"""Tokens per forward with 64 and with 8 nodes, without common code."""
AHEAD = 1.4
"""Times the tokens per forward of FastCoder's rule."""


def bench(cases: Path, out: Path, *options: str) -> dict[str, Any]:
    code = main([
        "completion", "--cases", str(cases), "--limit", str(LIMIT), "--common", "none",
        "--methods", "fastcoder,redraft", "--json", str(out), *options,
    ])  # fmt: skip
    assert code == 0
    document: dict[str, Any] = json.loads(out.read_text())
    return document


def frozen_cases(folder: Path) -> Path:
    """Bodies of functions of the frozen packages, each with its package around it."""
    rows = []
    for package in frozen_corpus.PACKAGES:
        files = {
            path.relative_to(frozen_corpus.FOLDER).as_posix(): path.read_text()
            for path in frozen_corpus.files(package)
        }
        contents = [{"path": path, "content": text} for path, text in files.items()]
        repository = folder / f"{package}.jsonl"
        repository.write_text("".join(json.dumps(row) + "\n" for row in contents))
        for path, text in files.items():
            rows += [
                {
                    "id": f"{path}:{body.before.count(chr(10))}",
                    "repo": repository.name,
                    "path": path,
                    "prefix": body.before,
                    "suffix": body.after,
                    "reference": body.answer,
                }
                for body in bodies_of(path, text)
            ]
    cases = folder / "cases.jsonl"
    cases.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return cases


def test_completion_drafting_keeps_its_lead(tmp_path: Path) -> None:
    frozen = bench(frozen_cases(tmp_path), tmp_path / "frozen.json")["methods"]
    ours, theirs = (frozen[name]["tokens_per_forward"] for name in ("redraft", "fastcoder"))
    assert ours > AHEAD * theirs


def test_completion_drafting_keeps_its_lead_on_the_cases(tmp_path: Path) -> None:
    cases = case_files.find("completion_repoeval.jsonl")
    document = bench(cases, tmp_path / "cases.json")
    methods = document["methods"]
    ours, theirs = (methods[name]["tokens_per_forward"] for name in ("redraft", "fastcoder"))
    assert ours >= FLOOR
    assert ours >= AHEAD * theirs
    for group in document["groups"].values():
        assert group["redraft"]["forwards"] < group["fastcoder"]["forwards"]
    small = bench(cases, tmp_path / "small.json", "--max-nodes", "8")["methods"]
    assert small["redraft"]["tokens_per_forward"] >= SMALL_FLOOR
