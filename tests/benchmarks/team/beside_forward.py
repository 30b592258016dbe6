"""``beside-forward``: processor time of the decode loop outside of its compiled forward, for a
request and a step, with one request under way and with several.

It runs the engine process's own loop in this process. A gap between two forwards of the same
requests counts, and none in which a request begins or ends. It is time of the thread, so that what
other programs take does not count.
"""

from __future__ import annotations

import argparse
import itertools
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from accel.models.batch import ForwardBatch
from accel.models.cpu.llama import CompiledLlama
from accel.models.cpu.thread_pool import ThreadPool
from lsp_server.engine.scheduler import EngineLoop
from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.codec import to_json
from lsp_server.shared.contract.jobs import COMPLETION, CompletionJob
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.errors import BenchError
from lsp_server.shared.processes.child import FramePipe
from tests.benchmarks.team.shared_forwards import prompt_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "--model", required=True, help="GGUF file, computed by the compiled forward"
    )
    parser.add_argument("--clients", default="1,8,16", help="numbers of requests, with commas")
    parser.add_argument("--rounds", type=int, default=3, help="requests of each client")
    parser.add_argument("--tokens", type=int, default=64, help="of an answer at most")
    parser.add_argument("--threads", type=int, default=1, help="of a forward")
    parser.add_argument("--unheard", action="store_true", help="nobody reads texts on the way")
    parser.add_argument("--json", nargs="?", const="-", metavar="PATH", help="write JSON")


def run(args: argparse.Namespace) -> int:
    """Measure and print. Raises BenchError."""
    from tests.benchmarks import report

    rows: dict[str, dict[str, Any]] = {}
    with measured_forwards() as forwards, running(args) as engine:
        for count in (int(part) for part in args.clients.split(",")):
            del forwards[:]
            for _ in range(args.rounds):
                engine.complete(count, args.tokens, heard=not args.unheard)
            rows[f"{count} requests"] = figures(forwards)
    columns = {
        "forwards": "forwards",
        "rows": "rows a forward",
        "forward_ms": "ms in a forward",
        "beside_ms": "ms beside it",
        "request_ms": "ms a request and step",
    }
    document = {"rows": rows, "machine": report.machine(), "versions": report.versions()}
    title = "processor time of the decode loop beside its forwards"
    report.publish(document, args.json, [report.table(title, rows, columns)])
    return 0


class MeasuredForward(NamedTuple):
    """A call of the compiled forward, in seconds of its thread."""

    began: float
    ended: float
    rows: int
    caches: frozenset[int]
    """Of its requests, by their identity."""
    is_prompt: bool


def figures(forwards: list[MeasuredForward]) -> dict[str, float]:
    """What the gaps between forwards of the same requests took."""
    gaps = [
        (after.began - before.ended, before)
        for before, after in itertools.pairwise(forwards)
        if before.caches == after.caches and not before.is_prompt and not after.is_prompt
    ]
    if not gaps:
        raise BenchError("no two forwards had the same requests; ask for more --tokens")
    beside, steps = sum(gap for gap, _ in gaps), sum(len(each.caches) for _, each in gaps)
    return {
        "forwards": len(gaps),
        "rows": sum(each.rows for _, each in gaps) / len(gaps),
        "forward_ms": 1000 * sum(each.ended - each.began for _, each in gaps) / len(gaps),
        "beside_ms": 1000 * beside / len(gaps),
        "request_ms": 1000 * beside / steps,
    }


@contextmanager
def measured_forwards() -> Iterator[list[MeasuredForward]]:
    """The compiled forwards from now on."""
    found: list[MeasuredForward] = []
    times: list[float] = []
    run_threads, forward_all = ThreadPool.run, CompiledLlama.forward_all

    def timed(pool: ThreadPool, *arguments: Any) -> Any:
        times.append(time.thread_time())
        try:
            return run_threads(pool, *arguments)
        finally:
            times.append(time.thread_time())

    def noted(model: CompiledLlama, batches: Sequence[ForwardBatch], caches: Any) -> Any:
        logits = forward_all(model, batches, caches)
        is_prompt = any(batch.logits_from == len(batch) for batch in batches)
        rows = sum(map(len, batches))
        began, ended = times[-2:]
        of = frozenset(map(id, caches))
        found.append(MeasuredForward(began, ended, rows, of, is_prompt))
        return logits

    with (
        patch.object(ThreadPool, "run", timed),
        patch.object(CompiledLlama, "forward_all", noted),
    ):
        yield found


@contextmanager
def running(args: argparse.Namespace) -> Iterator[RunningEngine]:
    """An engine's loop in a thread of this process, asked by pipes as the daemon asks it."""
    options = EngineOptions(
        path=args.model, common=False, disk_cache_megabytes=0, threads=args.threads
    )
    (asked, asking), (heard, telling) = os.pipe(), os.pipe()
    with (
        os.fdopen(asked, "rb") as questions,
        os.fdopen(asking, "wb") as asker,
        os.fdopen(heard, "rb") as answers,
        os.fdopen(telling, "wb") as teller,
    ):
        pipe = FramePipe(questions, teller)
        loop = EngineLoop(EngineService(options), pipe.read, pipe.write)
        daemon = FramePipe(answers, asker)

        def run_loop() -> None:
            # Who reads then finds the end, where no model could be loaded, too.
            with teller:
                loop.run()

        thread = threading.Thread(target=run_loop)
        thread.start()
        try:
            yield RunningEngine(daemon)
        finally:
            daemon.write({"op": "end"})
            thread.join()


class RunningEngine:
    """Asks an engine."""

    def __init__(self, pipe: FramePipe) -> None:
        self._pipe = pipe
        self._asked = 0

    def complete(self, count: int, tokens: int, *, heard: bool = True) -> None:
        """As many completions at a time, behind prompts that are computed before, ``heard`` while
        they are written. Raises BenchError."""
        jobs = [self._job(tokens) for _ in range(count)]
        for job in jobs:
            self._ask("prefill", [job], heard=False)
        self._ask("complete", jobs, heard=heard)

    def _ask(self, operation: str, jobs: list[dict[str, Any]], *, heard: bool) -> None:
        for number, job in enumerate(jobs):
            self._pipe.write(
                {"op": operation, "kind": "complete", "id": number, "job": job}
                | {"urgency": COMPLETION, "client": job["path"], "heard": heard}
            )
        left = len(jobs)
        while left:
            frame = self._pipe.read()
            if frame is None:
                raise BenchError("the engine ended; its message says why")
            if frame["event"] == "error":
                raise BenchError(f"the engine answered {frame['message']}")
            left -= frame["event"] == "result"

    def _job(self, tokens: int) -> dict[str, Any]:
        self._asked += 1
        job = CompletionJob(
            "", f"{self._asked}.py", prompt_text(self._asked), "", max_tokens=tokens
        )
        written: dict[str, Any] = to_json(job)
        return written
