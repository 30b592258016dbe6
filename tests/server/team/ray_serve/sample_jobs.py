"""Completions and edits at places of this repository, greedy and seeded by turns."""

from __future__ import annotations

import random
from pathlib import Path

from lsp_server.shared.contract.jobs import CompletionJob, EditJob

ROOT = Path(__file__).resolve().parents[4] / "lsp_server"
SELECTED_LINES = 6


def texts() -> dict[str, str]:
    """Text by path."""
    files = sorted(ROOT.rglob("*.py"))
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


def sampling(number: int, rng: random.Random) -> dict[str, float]:
    """Every second job is greedy."""
    if number % 2 == 0:
        return {}
    return {"temperature": 0.8, "top_p": 0.95, "seed": rng.randrange(1 << 31)}


def completion_jobs(count: int, rng: random.Random) -> list[CompletionJob]:
    """Completions at any place."""
    known = [(path, text) for path, text in texts().items() if len(text) > 200]
    jobs = []
    for number in range(count):
        path, text = rng.choice(known)
        cursor = rng.randrange(50, len(text))
        jobs.append(
            CompletionJob("", path, text[:cursor], text[cursor:], "python", **sampling(number, rng))
        )
    return jobs


def edit_jobs(count: int, rng: random.Random) -> list[EditJob]:
    """Edits of a few lines."""
    known = [(path, text) for path, text in texts().items() if text.count("\n") > 20]
    jobs = []
    for number in range(count):
        path, text = rng.choice(known)
        lines = text.splitlines(keepends=True)
        first = rng.randrange(len(lines) - SELECTED_LINES)
        last = first + SELECTED_LINES
        jobs.append(
            EditJob(
                "",
                path,
                rng.choice(
                    ["add type hints", "rename the first argument to value", "add comments"]
                ),
                "".join(lines[first:last]),
                "".join(lines[:first]),
                "".join(lines[last:]),
                "python",
                max_tokens=200,
                **sampling(number, rng),
            )
        )
    return jobs
