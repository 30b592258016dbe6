"""``first-text``: how long the first text of a suggestion takes, by what is known, and how long an
engine's start."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

from lsp_server.commands.bench.first_text import KINDS, first_text_s, first_texts, job_in, ready_s
from lsp_server.commands.bench.options import (
    add_model_arguments,
    add_text_argument,
    source_text,
    started,
)
from lsp_server.commands.bench.report import machine, publish, table, versions
from lsp_server.shared.errors import BenchError

STARTS = 3
MORE_KINDS = KINDS | {
    "edited": "another open file changed",
    "placed": "the cursor was known before",
    "restarted": "after a restart",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    add_text_argument(parser)
    parser.add_argument("--tokens", type=int, default=2048, help="of the file around the cursor")
    parser.add_argument("--seconds", type=float, default=1.5, help="redraft.context.promptSeconds")
    parser.add_argument("--rounds", type=int, default=5, help="documents")


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the document. Raises BenchError."""
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
        kind: {"what": MORE_KINDS[kind], "median": statistics.median(found), "most": max(found)}
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
