"""Times how long the first text of a suggestion takes, and an engine's start."""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from lsp_server.commands.bench.options import options_of
from lsp_server.shared.errors import BenchError

if TYPE_CHECKING:
    from lsp_server.engine.service import EngineService
    from lsp_server.shared.contract.jobs import CompletionJob

KINDS = {
    "cold": "nothing is known",
    "warm": "a letter more",
    "line": "a line more",
    "ready": "an engine's start, until its model is ready",
}
CURSOR = 0.75
"""Share of the text before the cursor."""
MOST_TOKENS = 48


def first_texts(service: EngineService, rounds: list[CompletionJob]) -> dict[str, list[float]]:
    """Return seconds of every job where nothing is known, then of a letter and of a line more."""
    times: dict[str, list[float]] = {"cold": [], "warm": [], "line": []}
    for job_round in rounds:
        for kind, typed in zip(times, ("", "x", "xs = []\n"), strict=True):
            job = replace(job_round, prefix=f"{job_round.prefix}{typed}")
            times[kind].append(first_text_s(service, job))
    return times


async def ready_s(args: argparse.Namespace) -> float:
    """Return seconds until an engine process, started as by the daemon, has its model ready."""
    from lsp_server.engine.client import EngineClient

    over = asyncio.Event()
    client = EngineClient(
        options_of(args), lambda: over.set() if client.status.state in ("ready", "failed") else None
    )
    began = time.perf_counter()
    try:
        await client.start()
        await over.wait()
        if client.status.state == "failed":
            raise BenchError(client.status.message)
        return time.perf_counter() - began
    finally:
        await client.close()


def first_text_s(service: EngineService, job: CompletionJob) -> float:
    """Return seconds from the request to the first text."""
    began = time.perf_counter()
    from accel.execution.forwards import told
    from lsp_server.tasks.steps import in_place

    steps = told(in_place(service.steps(job, lambda: False)))
    next(steps, None)
    seconds = time.perf_counter() - began
    for _ in steps:
        pass
    return seconds


def job_in(service: EngineService, text: str, tokens: int, seconds: float) -> CompletionJob:
    """Return a completion within a text of ``tokens`` tokens, beside another open file. ``seconds``
    limits it to what is computed in that time."""
    from lsp_server.shared.contract.jobs import CompletionJob, ContextSnippet

    encode, lines, text = service.engine.tokenizer.encode, text.splitlines(keepends=True), ""
    while lines and len(encode(text)) < tokens:
        text += lines.pop(0)
    cursor = text.rfind("\n", 0, int(CURSOR * len(text))) + 1
    return CompletionJob(
        "",
        "measured.py",
        text[:cursor],
        text[cursor:],
        snippets=[
            ContextSnippet("prices.py", "def price(count, each):\n    return count * each\n")
        ],
        context_tokens=-1,
        prompt_seconds=seconds,
        max_tokens=MOST_TOKENS,
        single_line=True,
    )
