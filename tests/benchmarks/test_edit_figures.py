"""Edit drafting keeps its lead: on small edits made here, and on the cases where they are there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from lsp_server.cli import main

PROJECT = Path(__file__).parents[2]
CASES = Path(os.environ.get("REDRAFT_CASES", PROJECT.parent / "shared" / "cases"))
SOURCES = ("lsp_server/cli.py", "accel/replay.py", "accel/verifier.py", "accel/draft_tree.py")
FLOORS = {"edit_canitedit.jsonl": (11.0, 18.0), "edit_commits.jsonl": (26.0, 40.0)}
"""Tokens per forward, total and mean of cases, at 128 nodes and without common code."""
LIMIT = 60
AHEAD = 2.3
"""Times the tokens per forward of EfficientEdit's rule without a draft model, in total."""


def bench(out: Path, *options: str) -> dict[str, Any]:
    code = main([
        "bench", "edit", "--common", "none", "--methods", "fastfixer,efficientedit,redraft",
        "--json", str(out), *options,
    ])  # fmt: skip
    assert code == 0
    methods: dict[str, Any] = json.loads(out.read_text())["methods"]
    return methods


def test_edit_drafting_keeps_its_lead(tmp_path: Path) -> None:
    """Every kind of instruction on functions of this project, and cases where there are any."""
    rows = [{"path": path, "content": (PROJECT / path).read_text()} for path in SOURCES]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    methods = bench(tmp_path / "out.json", "--kinds", str(tmp_path), "--per-kind", "2")
    ours = methods["redraft"]["tokens_per_forward"]
    assert ours > 18
    assert ours > AHEAD * methods["efficientedit"]["tokens_per_forward"]
    assert ours > 1.2 * methods["fastfixer"]["tokens_per_forward"]
    for name in FLOORS:
        if (CASES / name).is_file():
            check_cases(name, tmp_path)


def check_cases(name: str, folder: Path) -> None:
    methods = bench(folder / name, "--cases", str(CASES / name), "--limit", str(LIMIT))
    ours, theirs = methods["redraft"], methods["efficientedit"]
    total, mean = FLOORS[name]
    assert ours["tokens_per_forward"] >= total
    assert ours["tokens_per_forward_mean"] >= mean
    assert ours["tokens_per_forward"] >= AHEAD * theirs["tokens_per_forward"]
    if name == "edit_canitedit.jsonl":
        assert ours["tokens_per_forward_mean"] >= AHEAD * theirs["tokens_per_forward_mean"]
