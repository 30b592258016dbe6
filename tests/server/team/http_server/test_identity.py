"""The text of a request is the same over HTTP and in one process, greedy and seeded."""

from __future__ import annotations

import random
import sysconfig
from dataclasses import asdict
from pathlib import Path

import pytest
from seeds import Amount
from served import Served

from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.jobs import CompletionJob, EditJob, JobResult
from lsp_server.shared.errors import RedraftError

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
INSTRUCTIONS = ("add type hints", "add a docstring", "rename self to this", "remove the comments")


def sources(rng: random.Random) -> list[str]:
    """Files of Python's own library."""
    files = sorted(path for path in LIBRARY.glob("*.py") if path.stat().st_size < 60_000)
    return [file.read_text("utf-8") for file in rng.sample(files, 20)]


def completion_jobs(rng: random.Random, count: int) -> list[CompletionJob]:
    texts = sources(rng)
    jobs = []
    for number in range(count):
        text = rng.choice(texts)
        place = rng.randrange(len(text))
        before, after = text[max(place - 3000, 0) : place], text[place : place + 1000]
        temperature = 0.0 if number % 2 else 0.8
        jobs.append(
            CompletionJob(
                "",
                f"module_{number}.py",
                before,
                after,
                max_tokens=32,
                temperature=temperature,
                top_p=0.95 if temperature else 1.0,
                seed=rng.randrange(1 << 40),
            )
        )
    return jobs


def edit_jobs(rng: random.Random, count: int) -> list[EditJob]:
    texts = sources(rng)
    jobs = []
    for number in range(count):
        lines = rng.choice(texts).splitlines(keepends=True)
        place = rng.randrange(max(len(lines) - 20, 1))
        selection = "".join(lines[place : place + rng.randint(3, 12)])
        jobs.append(
            EditJob(
                "",
                f"module_{number}.py",
                rng.choice(INSTRUCTIONS),
                selection,
                max_tokens=160,
                temperature=0.0 if number % 2 else 0.5,
                seed=rng.randrange(1 << 40),
            )
        )
    return jobs


def run(local: EngineService, job: CompletionJob | EditJob) -> JobResult:
    return local.write(job)


def test_http_changes_no_text(server: Served, local: EngineService, amount: Amount) -> None:
    completions = amount(6, 200)
    edits = amount(3, 100)
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rng = random.Random(seed)
    compared = 0
    for job in [*completion_jobs(rng, completions), *edit_jobs(rng, edits)]:
        is_edit = isinstance(job, EditJob)
        body = {name: value for name, value in asdict(job).items() if name != "owner"}
        events = server.events(
            f"/redraft/v1/{'edit' if is_edit else 'complete'}", {"protocol": 1, "job": body}
        )
        name, told = events[-1]
        if name == "error":
            with pytest.raises(RedraftError) as refused:
                run(local, job)
            assert told == {"kind": type(refused.value).__name__, "message": str(refused.value)}
            continue
        expected = run(local, job)
        assert name == "result", told
        assert told["text"] == expected.text, job
        assert told["stopped_by"] == expected.stopped_by
        compared += 1
    assert compared > (completions + edits) / 2
