"""``as-served``: what a person gets from servers that were started without an option, beside the
best that the same model does in this process with the fittest number of threads.

In an empty home ``redraft serve`` starts, compiles, and answers an editor; then it starts once
more. ``redraft serve-http`` does the same in another home, for one client and for several. Figures
are taken a while after each start, in which a request comes now and then, quiet and beside a build.
Requests of the server and of the engines here take turns. A row of the server that has less than
``LEAST`` of the best row here is a fault.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil

from lsp_server.commands.cli.output import add_json_argument
from lsp_server.engine.service import EngineService, never
from lsp_server.shared.errors import BenchError
from lsp_server.tasks.steps import finished
from operating_system.machine import cores
from tests.benchmarks.as_served.at_hand import engines_at_hand, write
from tests.benchmarks.as_served.build import LOADS
from tests.benchmarks.as_served.doors import (
    Door,
    EditorDoor,
    ServerDoor,
    editor_door,
    server_door,
    threads_s,
    took_part,
)
from tests.benchmarks.as_served.requests import COMPLETION, ServedRequest, TimedText

LEAST = 0.9
"""Share of the best speed here that a server reaches."""
TEXTS = itertools.count(1)
"""Numbers of texts that were not asked for before."""
EDITOR_TOKENS = 64
"""Of a completion at most, as an editor asks where no option is given."""
USE_EVERY_S = 2.0
"""Between two requests while time passes."""
DOORS: dict[str, Callable[..., AbstractContextManager[Any]]] = {
    "editor": editor_door,
    "server": server_door,
}
COLUMNS = {
    "served": "served",
    "here": "best here",
    "unit": "",
    "ratio": "served / here",
    "threads": "threads",
    "here_threads": "threads here",
    "forwards": "forwards",
    "here_forwards": "forwards here",
    "rows": "rows",
    "here_rows": "rows here",
    "same_texts": "same texts",
    "fault": "fault",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", required=True, help="GGUF file or folder")
    parser.add_argument("--doors", default="editor,server", help="editor, server")
    parser.add_argument("--starts", type=int, default=2, help="the first of them compiles")
    parser.add_argument("--after", default="0,1,5", help="minutes after a start, with commas")
    parser.add_argument("--beside", default="quiet,build", help="quiet, build")
    parser.add_argument("--clients", type=int, default=8, help="of the server at a time")
    parser.add_argument("--requests", type=int, default=6, help="of each kind in a row")
    parser.add_argument("--tokens", type=int, default=64, help="of a completion at most")
    parser.add_argument(
        "--threads", help="of engines here, with commas; else every number up to the cores"
    )
    parser.add_argument(
        "--compiled", action="store_true", help="take what is compiled for this user already"
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Measure and print; return 1 where a row is a fault. Raises BenchError."""
    from tests.benchmarks import report

    doors = args.doors.split(",")
    loads = args.beside.split(",")
    if unknown := {*doors} - {*DOORS} | {*loads} - {*LOADS}:
        raise BenchError(f"{', '.join(sorted(unknown))} is unknown; --help names what there is")
    rows: dict[str, dict[str, Any]] = {}
    ready: dict[str, float] = {}
    threads = [int(each) for each in args.threads.split(",")] if args.threads else []
    with (
        tempfile.TemporaryDirectory(
            prefix="redraft-as-served-", ignore_cleanup_errors=True
        ) as folder,
        engines_at_hand(
            args.model, threads or range(1, cores() + 1), Path(folder, "here")
        ) as engines,
    ):
        for door, start in itertools.product(doors, range(1, args.starts + 1)):
            name = f"{door}, start {start}"
            opening = DOORS[door](args.model, Path(folder, door), compiled=args.compiled)
            with opening as opened:
                ready[name] = opened.ready_s
                print(f"{name}: ready after {opened.ready_s:.1f} s", file=sys.stderr)
                for row, figures in _rows(args, opened, engines):
                    rows[f"{name}, {row}"] = figures
                    print(f"{name}, {row}: {json.dumps(figures)}", file=sys.stderr)
    faults = [name for name, row in rows.items() if row["fault"]]
    document = {
        "rows": rows,
        "ready_s": ready,
        "faults": faults,
        "model": args.model,
        "machine": report.machine(),
        "versions": report.versions(),
    }
    title = "served without an option, beside the best here"
    report.publish(document, args.json, [report.table(title, rows, COLUMNS, "row")])
    for name in faults:
        print(f"fault: {name}: {rows[name]['fault']}", file=sys.stderr)
    return 1 if faults else 0


def _rows(
    args: argparse.Namespace, door: Door, engines: dict[int, EngineService]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of one start, by name."""
    started_s = time.monotonic()
    for minutes, load in itertools.product(args.after.split(","), args.beside.split(",")):
        while (left_s := started_s + 60 * float(minutes) - time.monotonic()) > 0:
            door.write(ServedRequest(COMPLETION, next(TEXTS), args.tokens))
            time.sleep(min(USE_EVERY_S, left_s))
        with LOADS[load]():
            for kind, row in _rows_now(args, door, engines):
                yield f"after {minutes} min, {load}: {kind}", row


def _rows_now(
    args: argparse.Namespace, door: Door, engines: dict[int, EngineService]
) -> Iterator[tuple[str, dict[str, Any]]]:
    tokens = EDITOR_TOKENS if isinstance(door, EditorDoor) else args.tokens
    for kind in door.kinds:
        lines = [[ServedRequest(kind, next(TEXTS), tokens)] for _ in range(args.requests)]
        served, here, threads = _by_turns(door, engines, lines)
        yield kind, row_of(served, here, threads)
        if isinstance(door, ServerDoor) and kind == COMPLETION:
            yield "first texts", first_texts_row(served, here)
    if isinstance(door, EditorDoor):
        requests = [
            ServedRequest(COMPLETION, next(TEXTS), args.tokens) for _ in range(args.requests)
        ]
        seconds = [door.first_suggestion_s(request) for request in requests]
        yield "first suggestions", {"served": statistics.median(seconds), "unit": "s", "fault": ""}
    if isinstance(door, ServerDoor):
        clients, rounds = args.clients, max(1, args.requests // 3)
        lines = [
            [ServedRequest(COMPLETION, next(TEXTS), args.tokens) for _ in range(clients)]
            for _ in range(rounds)
        ]
        for request in itertools.chain.from_iterable(lines):
            door.prefill(request)
            for engine in engines.values():
                finished(engine.prefill_steps(request.job, never), None)
        served, here, threads = _by_turns(door, engines, lines)
        yield f"{clients} clients", row_of(served, here, threads)


class Answers:
    """The answers of one side to lines of requests, each line answered together."""

    def __init__(self) -> None:
        self.written: list[TimedText] = []
        self.seconds = 0.0
        """Of all lines, one after another; of a line the longest answer."""

    def add(self, line: Sequence[TimedText]) -> None:
        """Take the answers of a line."""
        self.written += line
        self.seconds += max((each.seconds for each in line), default=0.0)

    def sum(self, name: str) -> int:
        """Return the sum of a field."""
        return sum(getattr(each, name) for each in self.written)

    @property
    def tokens_per_s(self) -> float:
        """The speed of all clients together."""
        return self.sum("tokens") / max(self.seconds, 1e-9)


def _by_turns(
    door: Door, engines: dict[int, EngineService], lines: Sequence[Sequence[ServedRequest]]
) -> tuple[Answers, dict[int, Answers], dict[int, int]]:
    """Answer ``lines`` by the server and by each engine here, in turn. Return the answers of both,
    and the threads that took part in each, the server's by 0. A line that the server refuses is
    asked of no engine."""
    served = Answers()
    here = {count: Answers() for count in engines}
    own = psutil.Process()
    used: dict[int, dict[int, float]] = {}
    for line in lines:
        before = door.threads_s()
        answers = door.write_together(line)
        _add_times(used.setdefault(0, {}), before, door.threads_s())
        if len(answers) < len(line):
            continue
        served.add(answers)
        for count, engine in engines.items():
            before = threads_s(own)
            here[count].add(write(engine, line))
            _add_times(used.setdefault(count, {}), before, threads_s(own))
    return served, here, {count: took_part(times) for count, times in used.items()}


def _add_times(used: dict[int, float], before: dict[int, float], after: dict[int, float]) -> None:
    for thread, seconds in after.items():
        used[thread] = used.get(thread, 0.0) + seconds - before.get(thread, 0.0)


def row_of(served: Answers, here: dict[int, Answers], threads: dict[int, int]) -> dict[str, Any]:
    """Return the figures of a server beside the best of the engines here."""
    if not served.written:
        return {"served": None, "unit": "refused", "fault": ""}
    best = max(here, key=lambda count: here[count].tokens_per_s)
    texts = {count: [each.text for each in answers.written] for count, answers in here.items()}
    same = [one.text == other for one, other in zip(served.written, texts[best], strict=True)]
    ratio = served.tokens_per_s / here[best].tokens_per_s
    return {
        "served": served.tokens_per_s,
        "here": here[best].tokens_per_s,
        "here_by_threads": {count: each.tokens_per_s for count, each in here.items()},
        "unit": "tokens/s",
        "ratio": ratio,
        "tokens": served.sum("tokens"),
        "here_tokens": here[best].sum("tokens"),
        "threads": threads[0],
        "here_threads": threads[best],
        "forwards": served.sum("forwards"),
        "here_forwards": here[best].sum("forwards"),
        "rows": served.sum("rows"),
        "here_rows": here[best].sum("rows"),
        "same_texts": f"{sum(same)}/{len(same)}",
        "fault": f"{ratio:.2f} of the best here" if ratio < LEAST else "",
    }


def first_texts_row(served: Answers, here: dict[int, Answers]) -> dict[str, Any]:
    """Return the seconds until first texts of a server beside the best of the engines here."""

    def median_s(answers: Answers) -> float:
        return statistics.median(each.first_s for each in answers.written)

    best_s = min(map(median_s, here.values()))
    ratio = best_s / median_s(served)
    fault = f"{ratio:.2f} of the best here" if ratio < LEAST else ""
    return {
        "served": median_s(served),
        "here": best_s,
        "unit": "s",
        "ratio": ratio,
        "fault": fault,
    }
