"""``redraft bench first-text``: how long the first text of a suggestion takes, by what is known,
and how long an engine's start."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.commands.bench.options import (
    add_model_arguments,
    add_text_argument,
    options_of,
    source_text,
    started,
)
from lsp_server.shared.errors import BenchError

if TYPE_CHECKING:
    from lsp_server.engine.service import EngineService
    from lsp_server.shared.contract.jobs import CompletionJob

KINDS = {
    "cold": "nothing is known",
    "warm": "a letter more",
    "line": "a line more",
    "edited": "another open file changed",
    "placed": "the cursor was known before",
    "restarted": "after a restart",
    "ready": "an engine's start, until its model is ready",
}
STARTS = 3
CURSOR = 0.75
"""Share of the text before the cursor."""
MOST_TOKENS = 48


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    add_text_argument(parser)
    parser.add_argument("--tokens", type=int, default=2048, help="of the file around the cursor")
    parser.add_argument("--seconds", type=float, default=1.5, help="redraft.context.promptSeconds")
    parser.add_argument("--rounds", type=int, default=5, help="documents")


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the document. Raises BenchError."""
    from lsp_server.commands.bench.report import machine, publish, table, versions

    if min(args.tokens, args.rounds) < 1 or args.seconds <= 0:
        raise BenchError("give --tokens, --rounds and --seconds above 0")
    with tempfile.TemporaryDirectory(prefix="redraft-kv-") as folder:
        times, lengths = _measured(args, Path(folder))
    starts = [asyncio.run(ready_s(args)) for _ in range(STARTS)]
    medians = {kind: statistics.median(found) for kind, found in times.items()}
    document = {
        "first_text_s": medians,
        "first_text_s_all": times,
        "ready_s": statistics.median(starts),
        "ready_s_all": starts,
        **lengths,
        "model": args.model,
        "machine": machine(),
        "versions": versions(),
    }
    rows = {
        kind: {"what": KINDS[kind], "median": statistics.median(found), "most": max(found)}
        for kind, found in {**times, "ready": starts}.items()
    }
    title = f"seconds to the first text, {lengths['prompt_tokens']} tokens of prompt"
    columns = {"what": "what", "median": "median", "most": "most"}
    publish(document, args.json, [table(title, rows, columns, "kind")])
    return 0


def _measured(
    args: argparse.Namespace, folder: Path
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Seconds of every round by kind, and the lengths of the prompt in tokens."""
    service = started(args, cache_folder=folder)
    job = job_in(service, source_text(args.file), args.tokens, args.seconds)
    longest = service.status().prompt_length.tokens(args.seconds)
    rounds = [replace(job, path=f"{number}.py") for number in range(args.rounds)]
    times = first_texts(service, rounds)
    for one in rounds:
        lined = replace(one, prefix=f"{one.prefix}xs = []\n")
        edited = replace(lined, snippets=[replace(job.snippets[0], text="def price(): ...\n")])
        times.setdefault("edited", []).append(first_text_s(service, edited))
        placed = replace(one, path=f"placed-{one.path}")
        service.prefill(placed)
        times.setdefault("placed", []).append(first_text_s(service, placed))
    prefilled = service.prefill(job)
    service.save_caches()
    service.close()
    service = started(args, cache_folder=folder)
    times["restarted"] = [first_text_s(service, one) for one in rounds]
    service.close()
    return times, {"prompt_tokens": prefilled, "longest_prompt_tokens": longest}


def first_texts(service: EngineService, rounds: list[CompletionJob]) -> dict[str, list[float]]:
    """Seconds of every job where nothing is known, then of a letter and of a line more."""
    times: dict[str, list[float]] = {"cold": [], "warm": [], "line": []}
    for one in rounds:
        for kind, typed in zip(times, ("", "x", "xs = []\n"), strict=True):
            job = replace(one, prefix=f"{one.prefix}{typed}")
            times[kind].append(first_text_s(service, job))
    return times


async def ready_s(args: argparse.Namespace) -> float:
    """Seconds until an engine process, started as the daemon starts it, has its model ready."""
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
    """Seconds from the request to the first text."""
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
    """A completion within so many tokens of a text, beside another open file. ``seconds``: for as
    long as is computed in so many."""
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
