"""Forwards of several engines on one file, by turns, each engine in a process of its own."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil

from tests.benchmarks.peers.child_process import ChildProcess

LEAST_TURNS = 3
TIMES = 5
"""Forwards of each number of rows in a turn, after one that is not counted."""


def measure_in_turns(
    engines: Mapping[str, ChildProcess],
    *,
    rows: Sequence[int],
    context: int,
    prompt: int,
    seconds: float,
    turned: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """``forward_ms`` by engine and number of rows, with its ``threads`` and the ``type`` of its
    weights, ``prefill_ms`` of ``prompt`` tokens, ``resident_mb`` at the end, and ``engines``: what
    each says of itself.

    A figure is the least of the turns' medians: what else the machine does lasts for a turn or
    two, and only adds. Turns go on for ``seconds`` for each engine, ``LEAST_TURNS`` at least.
    """
    forwards: dict[str, dict[int, float]] = {name: {} for name in engines}
    prefills = dict.fromkeys(engines, float("inf"))
    started, turns = time.perf_counter(), 0
    while turns < LEAST_TURNS or time.perf_counter() - started < seconds * len(engines):
        names = list(engines)
        for name in names[turns % len(names) :] + names[: turns % len(names)]:
            prefills[name] = min(prefills[name], engines[name].call("prefill_s", prompt))
            for count in sorted(rows, reverse=True):
                times = engines[name].call("forward_s", count, context, TIMES + 1)[1:]
                median = statistics.median(times)
                forwards[name][count] = min(forwards[name].get(count, median), median)
            turned()
        turns += 1
    about = {name: engine.call("about") for name, engine in engines.items()}
    return {
        "forward_ms": {
            name: {key: about[name][key] for key in ("threads", "type")}
            | {str(count): 1e3 * forwards[name][count] for count in sorted(rows)}
            for name in engines
        },
        "prefill_ms": {name: {str(prompt): 1e3 * prefills[name]} for name in engines},
        "resident_mb": {
            name: psutil.Process(engine.pid).memory_info().rss / 1e6
            for name, engine in engines.items()
        },
        "engines": about,
    }
