"""Edit drafting keeps its lead: on edits of the frozen corpus, and on the measuring cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import case_files
import frozen_corpus
import pytest

from tests.benchmarks.__main__ import main

FLOORS = {"edit_canitedit.jsonl": (11.0, 18.0), "edit_commits.jsonl": (26.0, 40.0)}
"""Tokens per forward, total and mean of cases, at 128 nodes and without common code."""
LIMIT = 60
AHEAD = 2.3
"""Times the tokens per forward of EfficientEdit's rule without a draft model, in total."""


def bench(out: Path, *options: str) -> dict[str, Any]:
    code = main([
        "edit", "--common", "none", "--methods", "fastfixer,efficientedit,redraft",
        "--json", str(out), *options,
    ])  # fmt: skip
    assert code == 0
    methods: dict[str, Any] = json.loads(out.read_text())["methods"]
    return methods


def test_edit_drafting_keeps_its_lead(tmp_path: Path) -> None:
    """Every kind of instruction, on functions of the frozen corpus."""
    rows = [{"path": file.name, "content": file.read_text()} for file in frozen_corpus.files()]
    (tmp_path / "frozen.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    methods = bench(tmp_path / "out.json", "--kinds", str(tmp_path), "--per-kind", "2")
    ours = methods["redraft"]["tokens_per_forward"]
    assert ours > 18
    assert ours > AHEAD * methods["efficientedit"]["tokens_per_forward"]
    assert ours > 1.2 * methods["fastfixer"]["tokens_per_forward"]


@pytest.mark.parametrize("name", sorted(FLOORS))
def test_edit_drafting_keeps_its_lead_on_the_cases(name: str, tmp_path: Path) -> None:
    cases = case_files.find(name)
    methods = bench(tmp_path / name, "--cases", str(cases), "--limit", str(LIMIT))
    ours, theirs = methods["redraft"], methods["efficientedit"]
    total, mean = FLOORS[name]
    assert ours["tokens_per_forward"] >= total
    assert ours["tokens_per_forward_mean"] >= mean
    assert ours["tokens_per_forward"] >= AHEAD * theirs["tokens_per_forward"]
    if name == "edit_canitedit.jsonl":
        assert ours["tokens_per_forward_mean"] >= AHEAD * theirs["tokens_per_forward_mean"]
