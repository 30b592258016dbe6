"""``tests.benchmarks first-text``: how long the first text of a suggestion takes, by what is known,
and how long an engine's start."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import lsp_server
from lsp_server.contract.options import EngineOptions
from lsp_server.errors import BenchError
from tests.benchmarks.dtypes import KV_TYPES

if TYPE_CHECKING:
    from lsp_server.engine.jobs import CompletionJob
    from lsp_server.engine.process import EngineService

KINDS = {
    "cold": "nothing is known",
    "warm": "a letter more",
    "line": "a line more",
    "edited": "another open file changed",
    "placed": "the cursor was known before",
    "restarted": "after a restart",
}
READY = "an engine's start, until its model is ready"
STARTS = 3
KV_MEGABYTES = 4096
CURSOR = 0.75
"""Share of the text before the cursor."""
MOST_TOKENS = 48


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", metavar="PATH", help="folder or GGUF file; else the chosen one")
    parser.add_argument("--dtype", default="auto", help="auto, fp32, bf16 or int8")
    parser.add_argument("--kv-type", choices=KV_TYPES, default="f16", help="of keys and values")
    parser.add_argument("--threads", type=int, help="CPU threads; the engine's choice if left out")
    parser.add_argument("--file", type=Path, help="a source file; else one of Redraft's own")
    parser.add_argument("--tokens", type=int, default=2048, help="of the file around the cursor")
    parser.add_argument("--seconds", type=float, default=1.5, help="redraft.context.promptSeconds")
    parser.add_argument("--rounds", type=int, default=5, help="documents")
    parser.add_argument("--json", nargs="?", const="-", metavar="PATH", help="write JSON")


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the document. Raises BenchError."""
    from tests.benchmarks import report

    if min(args.tokens, args.rounds) < 1 or args.seconds <= 0:
        raise BenchError("give --tokens, --rounds and --seconds above 0")
    with tempfile.TemporaryDirectory(prefix="redraft-kv-") as folder:
        times, lengths = _measured(args, Path(folder))
    starts = [asyncio.run(_ready_s(args)) for _ in range(STARTS)]
    medians = {kind: statistics.median(found) for kind, found in times.items()}
    document = {
        "first_text_s": medians,
        "first_text_s_all": times,
        "ready_s": statistics.median(starts),
        "ready_s_all": starts,
        **lengths,
        "model": args.model,
        "machine": report.machine(),
        "versions": report.versions(),
    }
    rows = {
        kind: {"what": KINDS[kind], "median": medians[kind], "most": max(times[kind])}
        for kind in times
    }
    rows["ready"] = {"what": READY, "median": statistics.median(starts), "most": max(starts)}
    title = f"seconds to the first text, {lengths['prompt_tokens']} tokens of prompt"
    columns = {"what": "what", "median": "median", "most": "most"}
    report.publish(document, args.json, [report.table(title, rows, columns)])
    return 0


def _measured(
    args: argparse.Namespace, folder: Path
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Seconds of every round by kind, and the lengths of the prompt in tokens."""

    def started() -> EngineService:
        from lsp_server.engine.process import EngineService

        service = EngineService(
            replace(_options(args), disk_cache_megabytes=KV_MEGABYTES), caches=folder
        )
        service.load()
        service.warm_up()
        return service

    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    service = started()
    job = _job(service, args)
    longest = service.status().prompt_length.tokens(args.seconds)
    rounds = [replace(job, path=f"{number}.py") for number in range(args.rounds)]
    for one in rounds:
        typed = replace(one, prefix=f"{one.prefix}x")
        lined = replace(one, prefix=f"{one.prefix}xs = []\n")
        edited = replace(lined, snippets=[replace(job.snippets[0], text="def price(): ...\n")])
        times["cold"].append(_first_text_s(service, one))
        times["warm"].append(_first_text_s(service, typed))
        times["line"].append(_first_text_s(service, lined))
        times["edited"].append(_first_text_s(service, edited))
        placed = replace(one, path=f"placed-{one.path}")
        service.prefill(placed)
        times["placed"].append(_first_text_s(service, placed))
    held = service.prefill(job) + 1
    service.keep()
    service.close()
    service = started()
    times["restarted"] = [_first_text_s(service, one) for one in rounds]
    service.close()
    return times, {"prompt_tokens": held, "longest_prompt_tokens": longest}


def _options(args: argparse.Namespace) -> EngineOptions:
    return EngineOptions(
        path=args.model or "",
        dtype=args.dtype,
        kv_type=args.kv_type,
        threads=args.threads or 0,
        common=False,
        disk_cache_megabytes=0,
    )


async def _ready_s(args: argparse.Namespace) -> float:
    """Seconds until an engine process, started as the daemon starts it, has its model ready."""
    from lsp_server.engine.client import EngineClient

    over = asyncio.Event()
    client = EngineClient(
        _options(args), lambda: over.set() if client.status.state in ("ready", "failed") else None
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


def _first_text_s(service: EngineService, job: CompletionJob) -> float:
    began = time.perf_counter()
    steps = service.complete_steps(job)
    next(steps, None)
    seconds = time.perf_counter() - began
    for _ in steps:
        pass
    return seconds


def _job(service: EngineService, args: argparse.Namespace) -> CompletionJob:
    """A completion within a text of so many tokens, beside another open file."""
    from lsp_server.engine.jobs import CompletionJob, ContextSnippet

    text = _text(args.file, service.engine.tokenizer.encode, args.tokens)
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
        prompt_seconds=args.seconds,
        max_tokens=MOST_TOKENS,
        single_line=True,
    )


def _text(file: Path | None, encode: Callable[[str], object], tokens: int) -> str:
    """The beginning of a file, of so many tokens. Raises BenchError."""
    chosen = file or Path(lsp_server.__file__).parent / "editing" / "provider.py"
    try:
        lines = chosen.read_text("utf-8").splitlines(keepends=True)
    except (OSError, ValueError) as error:
        raise BenchError(f"{chosen} cannot be read ({error})") from error
    text = ""
    while lines and len(encode(text)) < tokens:  # type: ignore[arg-type]
        text += lines.pop(0)
    return text
