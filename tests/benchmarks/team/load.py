"""``tests.benchmarks load``: clients of a team's server, at a given rate, for a given time.

Works against ``redraft serve-http`` and ``redraft deploy --ray``. Clients type, so most prompts
go on from one that the server knows, as an editor's do. Every client has a word of its
own in its files; no answer may hold another's. With ``--similar`` files with its word
go along with each request, so that drafts come from there. Times are taken at the clients.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from pathlib import Path
from typing import Any

import httpx2

import lsp_server
from lsp_server.commands.cli.output import add_json_argument, write_json
from lsp_server.shared.errors import BenchError
from tests.benchmarks.keystrokes.typist import percentile
from tests.benchmarks.process_memory import MemoryWatch
from tests.benchmarks.team.clients import (
    TIMEOUT_S,
    LoadClient,
    LoadShape,
    LoadTally,
    Member,
    marks_of,
)

TEXTS = 40
LEAST_CHARACTERS = 400
MOST_CHARACTERS = 3000

GOALS = {
    "status_5xx": "0",
    "share_429": "<= 0.01",
    "broken": "0",
    "failed_answers": "0",
    "failed_after_retry": "0",
    "ms_p95": "<= 500",
    "foreign_marks": "0",
    "own_marks": "> 0",
    "memory_growth_percent": "<= 3",
}
"""What is to be reached with two replicas of a small model."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the bench."""
    parser.add_argument("--url", required=True, help="of the server, as http://127.0.0.1:8000")
    parser.add_argument("--key", help="of all clients")
    parser.add_argument(
        "--keys", type=Path, help="file with lines NAME KEY: clients take these in turn"
    )
    parser.add_argument("--clients", type=int, default=50, help="editors")
    parser.add_argument("--rate", type=float, default=25.0, help="requests a second of them all")
    parser.add_argument("--seconds", type=float, default=600.0, help="for so long")
    parser.add_argument("--edits", type=float, default=0.02, help="share of edits")
    parser.add_argument("--leaving", type=float, default=0.1, help="share that is left early")
    parser.add_argument("--max-tokens", type=int, default=32, help="of a completion")
    parser.add_argument(
        "--folder", type=Path, help="whose Python files are typed in; none: Redraft's own"
    )
    parser.add_argument("--similar", action="store_true", help="send text of other files along")
    parser.add_argument(
        "--pid",
        type=int,
        action="append",
        default=[],
        help="of the server on this machine: its memory and its descendants' is watched",
    )
    parser.add_argument("--seed", type=int, default=0, help="of places and times")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Ask, measure, print. Raises BenchError."""
    keys = _keys(args)
    try:
        result = asyncio.run(_measured(args, keys))
    except httpx2.HTTPError as error:
        raise BenchError(f"{args.url} does not answer as it should: {error!r}") from error
    if args.json:
        write_json(args.json, result)
    else:
        for name, value in result.items():
            print(f"{name:24} {value!s:24} {GOALS.get(name, '')}".rstrip())
    return 0


def _keys(args: argparse.Namespace) -> list[str]:
    if bool(args.key) == bool(args.keys):
        raise BenchError("give --key or --keys")
    if args.key:
        return [args.key]
    lines = [line.split() for line in args.keys.read_text("utf-8").splitlines() if line.strip()]
    keys = [words[1] for words in lines if len(words) > 1 and not words[0].startswith("#")]
    if not keys or any(key.startswith("hmac-sha256:") for key in keys):
        raise BenchError(f"{args.keys} has hashes; give a file with lines NAME KEY")
    return keys


async def _measured(args: argparse.Namespace, keys: list[str]) -> dict[str, Any]:
    rng = random.Random(args.seed)
    texts = _texts(args.folder or Path(lsp_server.__file__).parent, rng)
    marks = marks_of(args.clients, rng)
    tally, memory = LoadTally(), MemoryWatch(args.pid)
    shape = LoadShape(args.rate / args.clients, args.edits, args.leaving, args.max_tokens)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=args.clients)
    async with httpx2.AsyncClient(base_url=args.url, timeout=TIMEOUT_S, limits=limits) as http:
        sent = texts[:4] if args.similar else []
        members = [
            Member(keys[n % len(keys)], mark, [marked(text, mark) for text in sent])
            for n, mark in enumerate(marks)
        ]
        clients = [
            LoadClient(http, one, texts, frozenset(marks), tally, rng.getrandbits(32))
            for one in members
        ]
        await asyncio.gather(*(client.open(shape) for client in clients))
        watching = asyncio.ensure_future(memory.watch())
        await asyncio.gather(*(client.work(shape, args.seconds) for client in clients))
        watching.cancel()
    return {**load_figures(tally, args.seconds), **_memory(memory), "seed": args.seed}


def load_figures(tally: LoadTally, seconds: float) -> dict[str, Any]:
    """The figures of a load. Shares are of 1, times in milliseconds."""
    tried = sum(tally.statuses.values())
    return {
        "answers": len(tally.latencies_ms),
        "answers_per_second": round(len(tally.latencies_ms) / seconds, 2),
        "left": tally.left,
        "late": tally.late,
        "tokens": tally.tokens,
        "statuses": {str(status): count for status, count in sorted(tally.statuses.items())},
        "status_5xx": sum(n for status, n in tally.statuses.items() if status >= 500),
        "share_429": round(tally.statuses[429] / tried, 4) if tried else 0.0,
        "broken": tally.statuses[0],
        "failed_answers": tally.failed_answers,
        "retried": tally.retried,
        "failed_after_retry": tally.failed_after_retry,
        "ms_p50": percentile(tally.latencies_ms, 50),
        "ms_p95": percentile(tally.latencies_ms, 95),
        "ms_p99": percentile(tally.latencies_ms, 99),
        "engine_ms_p50": percentile(tally.engine_ms, 50),
        "engine_ms_p95": percentile(tally.engine_ms, 95),
        "first_text_ms_p50": percentile(tally.first_text_ms, 50),
        "foreign_marks": tally.foreign_marks,
        "own_marks": tally.own_marks,
    }


def _memory(memory: MemoryWatch) -> dict[str, Any]:
    figures = memory.figures
    if not figures:
        return {}
    return {"memory_growth_percent": figures["all"]["growth_percent"], "memory": figures}


def marked(text: str, mark: str) -> str:
    """Return ``text`` with a line of ``mark`` after every few lines."""
    lines = text.splitlines(keepends=True)
    for number in range(len(lines), 0, -8):
        lines.insert(number, f"{mark} = {number}\n")
    return "".join(lines)


def _texts(folder: Path, rng: random.Random) -> list[str]:
    """Files to type in. Raises BenchError where there are none."""
    files = sorted(folder.rglob("*.py"))
    rng.shuffle(files)
    texts = [file.read_text("utf-8", "replace")[:MOST_CHARACTERS] for file in files[: 4 * TEXTS]]
    texts = [text for text in texts if len(text) >= LEAST_CHARACTERS][:TEXTS]
    if not texts:
        raise BenchError(f"{folder} has no Python files of some length; give --folder another")
    return texts
