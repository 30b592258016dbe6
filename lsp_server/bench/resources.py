"""Memory and CPU of decoding with a method (the paper's Table V), each in a process of its own."""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from typing import Any

METHODS = ("plain", "rest", "suffix-decoding", "fastcoder", "redraft")


def measure_resources(args: argparse.Namespace) -> dict[str, Any]:
    """Row name to figures; a peer that is not installed says so."""
    fresh = multiprocessing.get_context("spawn")
    rows: dict[str, Any] = {}
    for method in METHODS:
        with fresh.Pool(1) as pool:
            rows[method] = pool.apply(_measured, (args, method))
    return rows


def _measured(args: argparse.Namespace, method: str) -> dict[str, Any]:
    """Decode the cases with one method: peak memory of the process, CPU over wall time of decoding.

    A helper process of a peer is counted with it.
    """
    from accel.engine import Engine
    from accel.errors import PeerUnavailable
    from accel.sampling import Sampling
    from lsp_server.bench import report
    from lsp_server.bench.completion import load_cases
    from lsp_server.bench.completion_model import EngineDecoder, make_task
    from lsp_server.bench.completion_targets import load_datastores
    from lsp_server.bench.methods import DRAFTERS, PLANNED, MethodSetup

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
        engine, make, plan=method in PLANNED, max_nodes=args.max_nodes, sampling=Sampling()
    )
    tokens = 0
    cpu_s = wall_s = 0.0
    for case in cases:
        task = make_task(case, datastores, engine, args.stop, args.max_tokens, args.left_only)
        started, cpu_started = time.perf_counter(), _cpu_s()
        tokens += decode(task).statistics.tokens
        wall_s += time.perf_counter() - started
        cpu_s += _cpu_s() - cpu_started
    peak_kb = sum(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {
        "memory_mb": peak_kb / 1024,
        "cpu_percent": 100 * cpu_s / wall_s,
        "tokens_per_s": tokens / wall_s,
    }


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
