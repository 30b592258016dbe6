"""What clients cost: start, memory, idle processor time, a large file, and many for long."""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psutil

from lsp_server.shared.errors import BenchError
from tests.benchmarks.keystrokes.client import PrivateDaemon, TypingClient
from tests.benchmarks.keystrokes.typist import TypedPassage, Typist

STARTS = 7
IDLE_S = 10.0
SETTLE_S = 3.0
LONG_FILE_LINES = 10_000
LONG_FILE_KEYS = 300
MOST_IDLE_WAIT_S = 600.0
COMPILING = "engine.compiling"
IDLE_SHARE = 0.05
"""Processor seconds in a second."""
SETTLING_SHARE = 0.2
"""Of a soak, before its memory is first looked at: caches fill up."""


def wait_until_idle(daemon: PrivateDaemon) -> None:
    """Until no process works any more: behind its first answers an engine measures what forwards
    cost, and what a first start compiles goes on beside it."""
    root = psutil.Process(daemon.status()["pid"])
    ends = time.monotonic() + MOST_IDLE_WAIT_S
    used = -1.0
    while time.monotonic() < ends:
        seconds = seconds_by_process([root.pid])
        # What is compiled waits for what others do on a busy machine.
        if COMPILING not in seconds and seconds.total() <= used + IDLE_SHARE:
            return
        used = seconds.total()
        time.sleep(1.0)


def processor_s(roots: Sequence[int]) -> float:
    """Return the processor seconds of the processes ``roots`` and all that they started."""
    return sum(seconds_by_process(roots).values())


def seconds_by_process(roots: Sequence[int]) -> Counter[str]:
    """Return the same by the modules that the processes run; what ended counts for its parent."""
    seconds = Counter[str]()
    for root in roots:
        process = psutil.Process(root)
        for each in [process, *process.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                modules = [word for word in each.cmdline() if word.startswith("lsp_server.")]
                name = modules[0].split(".", 1)[1] if modules else "front and others"
                seconds[name] += sum(each.cpu_times()[:4])
    return seconds


def process_figures(daemon: PrivateDaemon) -> dict[str, Any]:
    """Figures of further clients of a warm daemon that has one."""
    starts = []
    for _ in range(STARTS):
        client = daemon.connect(wait=False)
        starts.append(client.initialized_s * 1000)
        client.close()
    before = sum(_rss(pid) for pid in daemon.pids())
    client = daemon.connect()
    time.sleep(SETTLE_S)
    grown = sum(_rss(pid) for pid in daemon.pids()) - before
    front = _rss(client.pid)
    client.watch_no_more()
    pids = [*daemon.pids(), client.pid]
    used = sum(map(_processor_s, pids))
    time.sleep(IDLE_S)
    idle = sum(map(_processor_s, pids)) - used
    client.close()
    return {
        "initialized_ms_p50": round(statistics.median(starts), 1),
        "initialized_ms_max": round(max(starts), 1),
        "second_client_mb": round((front + max(0, grown)) / 1e6, 1),
        "second_client_front_mb": round(front / 1e6, 1),
        "idle_cpu_percent": round(100 * idle / IDLE_S, 2),
    }


def long_file_figures(daemon: PrivateDaemon, text: str, seed: int) -> dict[str, Any]:
    """Handling of ``didChange`` in a file of 10,000 lines, by a client of its own."""
    rng = random.Random(seed)
    client = daemon.connect()
    lines = text.count("\n") + 1
    long_text = "\n".join([text] * (LONG_FILE_LINES // lines + 1))
    document = client.open((daemon.workspace / "long_file.py").as_uri(), long_text)
    for _ in range(LONG_FILE_KEYS):
        document.insert(rng.randrange(len(document.text)), rng.choice("abc (\n"))
        time.sleep(0.005)
    measured = client.measurements()["didChange"]
    client.close()
    return {
        "long_file_lines": document.text.count("\n") + 1,
        "long_file_did_change_ms_p95": round(1000 * measured["p95"], 2),
        "long_file_did_change_ms_max": round(1000 * measured["max"], 2),
    }


def soak(
    daemon: PrivateDaemon, places: list[TypedPassage], clients: int, minutes: float, seed: int
) -> dict[str, Any]:
    """So many people type for so long: errors, and how much memory grew."""
    until = time.monotonic() + minutes * 60
    settled = time.monotonic() + minutes * 60 * SETTLING_SHARE
    editors = [daemon.connect() for _ in range(clients)]
    with ThreadPoolExecutor(clients) as pool:
        work = [
            pool.submit(_type_until, editor, daemon, places, until, seed + number)
            for number, editor in enumerate(editors)
        ]
        time.sleep(max(0.0, settled - time.monotonic()))
        before, files_before = _sizes(daemon)
        typists = [one.result() for one in work]
    time.sleep(SETTLE_S)
    after, files_after = _sizes(daemon)
    for editor in editors:
        editor.close()
    errors = [error for typist in typists for error in typist.tally.errors]
    return {
        "soak_clients": clients,
        "soak_minutes": minutes,
        "soak_requests": sum(typist.tally.requests for typist in typists),
        "soak_errors": len(errors),
        "soak_first_errors": errors[:3],
        "soak_before_mb": {name: round(size / 1e6, 1) for name, size in before.items()},
        "soak_after_mb": {name: round(size / 1e6, 1) for name, size in after.items()},
        "soak_growth_percent": round(
            100 * (sum(after.values()) / max(1, sum(before.values())) - 1), 1
        ),
        "soak_descriptors_grown": files_after - files_before,
    }


def _type_until(
    client: TypingClient, daemon: PrivateDaemon, places: list[TypedPassage], until: float, seed: int
) -> Typist:
    rng = random.Random(seed)
    uri = (daemon.workspace / f"soak_{seed}.py").as_uri()
    typist = Typist(client.client, uri, rng, "40:120")
    while time.monotonic() < until:
        typist.type_at(rng.choice(places), 60)
    return typist


def _sizes(daemon: PrivateDaemon) -> tuple[dict[str, int], int]:
    """Resident bytes of the daemon's processes by role, and the daemon's open descriptors."""
    shown = daemon.status()
    sizes = {"daemon": _rss(shown["pid"]), "indexer": _rss(shown["indexer_pid"])}
    for number, engine in enumerate(shown["engines"]):
        sizes[f"engine {number}"] = _rss(engine["pid"])
    return sizes, int(psutil.Process(shown["pid"]).num_fds())


def _rss(pid: int | None) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss) if pid else 0
    except psutil.NoSuchProcess as error:
        raise BenchError(f"process {pid} ended during the bench; see its log") from error


def _processor_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)
