"""``redraft bench``: how fast your model is on your machine, on one page."""

from __future__ import annotations

import argparse
import asyncio
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lsp_server.commands.bench.first_text import KINDS, first_texts, job_in, ready_s
from lsp_server.commands.bench.forward import CONTEXT, forward_ms, forward_table
from lsp_server.commands.bench.options import (
    PEER,
    add_model_arguments,
    add_text_argument,
    source_text,
    started,
    why_no_peer,
)
from lsp_server.commands.cli.terminal import terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lsp_server.engine.service import EngineService
    from lsp_server.shared.contract.jobs import CompletionJob

FORWARDS_S = 5.0
FIRST_TEXTS = 3
PROMPT_TOKENS = 1024
PROMPT_S = 1.5
PLACES = 6
WRITTEN_TOKENS = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Forwards alone, a person typing, other systems and the tables of papers: "
        "python -m tests.benchmarks, in a checkout of Redraft's source."
    )
    add_model_arguments(parser)
    add_text_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, print the page, write the document. Raises BenchError or AccelError."""

    from lsp_server.commands.bench.report import machine, publish, table, versions

    text = source_text(args.file)
    why = why_no_peer(args.model)
    with terminal(stderr=True).status("starting an engine") as progress:
        ready = asyncio.run(ready_s(args))
        forwards: dict[str, Any] = {}
        written: dict[str, Any] = {}
        firsts: dict[str, list[float]] = {}
        for backend in ("auto",) if why else ("auto", PEER):
            name = "redraft" if backend == "auto" else backend
            progress.update(f"measuring {name}")
            service = started(args, backend)
            try:
                forwards[name] = forward_ms(service.engine, CONTEXT, FORWARDS_S)
                if backend == "auto":
                    job = job_in(service, text, PROMPT_TOKENS, PROMPT_S)
                    rounds = [replace(job, path=f"{n}.py") for n in range(FIRST_TEXTS)]
                    firsts = first_texts(service, rounds)
                    written["redraft"] = writing(service, text, plain=False)
                    written["redraft, no drafts"] = writing(service, text, plain=True)
                    computed = service.engine.execution_path
                else:
                    # Decoding by it in our loop has one width for all forwards, for the sake of
                    # equal texts; alone it takes one row each time.
                    alone_s = forwards[name]["1"] / 1e3
                    written[name] = {"tokens_per_s": 1 / alone_s, "tokens_per_forward": 1.0}
            finally:
                service.close()
    firsts["ready"] = [ready]
    seconds = {kind: statistics.median(times) for kind, times in firsts.items()}
    document = {
        "forward_ms": forwards,
        "context": CONTEXT,
        "first_text_s": seconds,
        "writing": written,
        "computed": computed,
        "model": args.model,
        "machine": machine(),
        "versions": versions(),
    }
    rows = {kind: {"what": KINDS[kind], "s": value} for kind, value in seconds.items()}
    columns = {"tokens_per_s": "tokens/s", "tokens_per_forward": "tokens/forward"}
    title = f"{PLACES} texts of {WRITTEN_TOKENS} tokens, from the left alone"
    texts = table(title, written, columns)
    if why:
        texts.caption, texts.caption_justify = f"no llama.cpp beside it: {why}", "left"
    firsts_table = table("seconds to the first text", rows, {"what": "what", "s": "s"}, "kind")
    tables = [forward_table(forwards, CONTEXT), firsts_table, texts]
    publish(document, args.json, tables)
    return 0


def writing(service: EngineService, text: str, *, plain: bool) -> dict[str, float]:
    """Return tokens per second and per forward after positions of a text, without prompts."""
    results = [service.write(replace(job, plain=plain)) for job in _places(text)]
    tokens = sum(result.tokens for result in results)
    return {
        "tokens": tokens,
        "tokens_per_s": tokens / max(1e-9, sum(result.seconds for result in results)),
        "tokens_per_forward": tokens / max(1, sum(result.forwards for result in results)),
    }


def _places(text: str) -> Iterator[CompletionJob]:
    from lsp_server.shared.contract.jobs import CompletionJob

    for number in range(PLACES):
        cursor = text.rfind("\n", 0, (number + 2) * len(text) // (PLACES + 2)) + 1
        yield CompletionJob("", f"place{number}.py", text[:cursor], "", max_tokens=WRITTEN_TOKENS)
