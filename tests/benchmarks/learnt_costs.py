"""``learnt-costs``: threads and drafts by learnt costs beside each fixed number of threads, alone,
beside real busy programs, and after these end."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lsp_server.commands.cli.output import add_json_argument
from lsp_server.shared.errors import BenchError
from operating_system.machine import most_cores
from tests.benchmarks.team.shared_forwards import prompt_text

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.models.costs.learnt_costs import LearntCosts

TOKENS, PROMPT_TOKENS = 64, 512
MOST_SLOWER = 2.0
"""Of the slowest twentieth of forwards beside the median of as many rows."""


class Phase(NamedTuple):
    """A moment of a machine: ``programs`` that keep a core busy each, seconds of use that pass
    uncounted, and the least share of the best fixed choice."""

    name: str
    programs: int
    uncounted_s: float
    least: float


PHASES = (
    Phase("first minute", 0, 0.0, 0.75),
    Phase("alone", 0, 0.0, 0.95),
    Phase("beside one program", 1, 0.0, 0.85),
    Phase("after it ended", 0, 5.0, 0.95),
    Phase("beside two programs", 2, 0.0, 0.85),
    Phase("after they ended", 0, 5.0, 0.95),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", required=True, help="GGUF file or folder")
    parser.add_argument("--threads", default="2,4", help="the most threads, in turn")
    parser.add_argument("--prompts", type=int, default=12, help="texts of a turn")
    parser.add_argument("--turns", type=int, default=3, help="of each choice in a phase")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Measure and print; 1 where a share is missed. Raises BenchError."""
    from tests.benchmarks import report

    counts = [int(count) for count in args.threads.split(",") if count.isdigit()]
    counts = [count for count in counts if 1 < count <= most_cores()]
    if not counts or min(args.prompts, args.turns) < 1:
        raise BenchError("give --threads of 2 or more that are here, --prompts and --turns above 0")
    figures: dict[str, dict[str, Any]] = {}
    for threads in counts:
        for name, found in _measured(args.model, threads, args.prompts, args.turns).items():
            figures[f"{threads} threads, {name}"] = found
    columns = {name: name for name in next(iter(figures.values()))}
    document = {"phases": figures, "model": args.model, "machine": report.machine(),
                "versions": report.versions()}  # fmt: skip
    report.publish(
        document, args.json, [report.table("tokens/s by learnt costs", figures, columns)]
    )
    return 1 if any(found["missed"] for found in figures.values()) else 0


def _measured(model: str, threads: int, prompts: int, turns: int) -> dict[str, dict[str, Any]]:
    """Return figures by phase."""
    from accel.decoding.engine import Engine
    from accel.models.costs.first_costs import first_costs, numbers_of_threads
    from accel.models.costs.learnt_costs import LearntCosts

    with TemporaryDirectory() as home, _cache_home(home):
        engine = Engine.load(model, threads=threads)
        learnt = engine.model.learnt
        if learnt is None or len(learnt.threads) < 2:
            raise BenchError(f"{model} is not computed by a number of threads that may change")
        fixed = {
            count: LearntCosts(first_costs(engine.model), [count])
            for count in numbers_of_threads(threads)
        }
        texts = [engine.tokenizer.encode(prompt_text(number))[:PROMPT_TOKENS]
                 for number in range(prompts)]  # fmt: skip
        # What drafts is compiled, or loaded, once.
        _rate(engine, fixed[threads], texts[:1])
        figures = {}
        for phase in PHASES:
            with _busy(phase.programs):
                until = time.perf_counter() + phase.uncounted_s
                while time.perf_counter() < until:
                    _rate(engine, learnt, texts[:1])
                figures[phase.name] = _compared(engine, learnt, fixed, texts, phase, turns)
        return figures


def _compared(
    engine: Engine,
    learnt: LearntCosts,
    fixed: dict[int, LearntCosts],
    texts: list[Any],
    phase: Phase,
    turns: int,
) -> dict[str, Any]:
    """Return figures of a phase, each choice in turn with the same texts."""
    rates: dict[int, list[float]] = defaultdict(list)
    forwards: list[tuple[int, float]] = []
    for _ in range(turns):
        # Each choice runs first as often as last.
        rates[0].append(_rate(engine, learnt, texts, forwards))
        for count, costs in fixed.items():
            rates[count].append(_rate(engine, costs, texts))
    mean = {count: float(np.mean(found)) for count, found in rates.items()}
    best = max(fixed, key=mean.__getitem__)
    share, slower = mean[0] / mean[best], _slowest(forwards)
    return {
        "learnt": round(mean[0], 1),
        "best fixed": round(mean[best], 1),
        "its threads": best,
        "share": round(share, 3),
        "asked": phase.least,
        "p95/p50": round(slower, 2),
        "missed": share < phase.least or slower > MOST_SLOWER,
    }


def _rate(
    engine: Engine,
    costs: LearntCosts,
    texts: list[Any],
    forwards: list[tuple[int, float]] | None = None,
) -> float:
    """Return tokens a second of answers after ``texts``; rows and seconds of forwards are noted in
    ``forwards``."""
    from accel.decoding.request import GenerationRequest
    from accel.drafting.retrieval.drafter import RetrievalDrafter
    from accel.planning.planner import AdaptivePlanner

    engine.model.learnt, engine.planner = costs, AdaptivePlanner(costs.costs)
    note, tokens, started = costs.note, 0, time.perf_counter()

    def noted(rows: int, context: int, seconds: float) -> None:
        note(rows, context, seconds)
        if forwards is not None:
            forwards.append((rows, seconds))

    costs.note = noted  # type: ignore[method-assign]
    try:
        for text in texts:
            request = GenerationRequest(text, TOKENS, RetrievalDrafter(), ignore_end=True)
            tokens += len(engine.generate(request).finish().tokens)
    finally:
        del costs.note
    return tokens / (time.perf_counter() - started)


def _slowest(forwards: list[tuple[int, float]]) -> float:
    """Return the 95th percentile of forwards, each in units of the median of its rows."""
    by_rows: dict[int, list[float]] = defaultdict(list)
    for rows, seconds in forwards:
        by_rows[rows].append(seconds)
    ratios = [np.array(found) / np.median(found) for found in by_rows.values() if len(found) > 20]
    return float(np.quantile(np.concatenate(ratios), 0.95)) if ratios else 1.0


@contextmanager
def _cache_home(folder: str) -> Iterator[None]:
    """Have costs stored in ``folder``, so that a start is a first one."""
    from accel.models.costs import profile_store

    before = profile_store._folder
    profile_store._folder = lambda: Path(folder)
    try:
        yield
    finally:
        profile_store._folder = before


@contextmanager
def _busy(programs: int) -> Iterator[None]:
    """Keep ``programs`` cores busy by processes of their own."""
    command = [sys.executable, "-I", "-c", "while True: sum(range(1000))"]
    started = [subprocess.Popen(command) for _ in range(programs)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()
