"""Memory and CPU of decoding with a method (the paper's Table V), each in a process of its own."""

from __future__ import annotations

import argparse
import multiprocessing
import threading
import time
from typing import Any

import psutil

EVERY_S = 0.05
"""Between two looks at the memory."""
METHODS = ("plain", "rest", "suffix-decoding", "fastcoder", "redraft")


def measure_resources(args: argparse.Namespace) -> dict[str, Any]:
    """Row name to figures; a peer that is not installed says so."""
    # Compiling takes memory that nobody needs later: what is first does it, and does not count.
    first = argparse.Namespace(**{**vars(args), "limit": 1})
    _in_a_process(first, METHODS[-1])
    return {method: _in_a_process(args, method) for method in METHODS}


def _in_a_process(args: argparse.Namespace, method: str) -> dict[str, Any]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (args, method))


def _measured(args: argparse.Namespace, method: str) -> dict[str, Any]:
    """Decode the cases with one method, once what it compiles or loads is there: peak memory of the
    process, CPU over wall time with the prompt, tokens over the time of decoding alone.

    A helper process of a peer is counted with it.
    """
    from accel.decoding.engine import Engine
    from tests.benchmarks import report
    from tests.benchmarks.completion.command import load_cases
    from tests.benchmarks.completion.model import EngineDecoder, make_task
    from tests.benchmarks.completion.targets import load_datastores, sampling_of
    from tests.benchmarks.methods import DRAFTERS, PLANNED, MethodSetup
    from tests.benchmarks.peers.errors import PeerUnavailable

    cases = load_cases(args)
    engine = Engine.load(args.model, dtype=args.dtype, threads=args.threads, device=args.device)
    if method == "plain":
        args.common = "none"
    with report.progress() as progress:
        datastores = load_datastores(args, engine.tokenizer, progress)
    try:
        make = DRAFTERS[method](MethodSetup(engine.tokenizer, datastores.common, args.seed))
    except PeerUnavailable as error:
        return {"unavailable": str(error)}
    decode = EngineDecoder(
        engine,
        make,
        plan=method in PLANNED,
        max_nodes=args.max_nodes,
        sampling=sampling_of(args),
    )
    how = args.stop, args.max_tokens, args.left_only
    tokens = 0
    cpu_s = wall_s = decode_s = 0.0
    with _PeakMemory() as memory:
        decode(make_task(cases[0], datastores, engine, *how))
        for case in cases:
            task = make_task(case, datastores, engine, *how)
            started, cpu_started = time.perf_counter(), _cpu_s()
            statistics = decode(task).statistics
            wall_s += time.perf_counter() - started
            cpu_s += _cpu_s() - cpu_started
            tokens, decode_s = tokens + statistics.tokens, decode_s + statistics.decode_s
    return {
        "memory_mb": memory.peak / (1 << 20),
        "cpu_percent": 100 * cpu_s / wall_s,
        "tokens_per_s": tokens / decode_s,
    }


class _PeakMemory:
    """Largest resident memory of this process and its helpers while the block runs, in bytes."""

    def __init__(self) -> None:
        self.peak = 0
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _PeakMemory:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while True:
            self.peak = max(self.peak, sum(each.memory_info().rss for each in _processes()))
            if self._over.wait(EVERY_S):
                return


def _cpu_s() -> float:
    times = [each.cpu_times() for each in _processes()]
    return float(sum(each.user + each.system for each in times))


def _processes() -> list[psutil.Process]:
    """This process and the helper processes of peers that are alive."""
    own = psutil.Process()
    return [own, *own.children(recursive=True)]
