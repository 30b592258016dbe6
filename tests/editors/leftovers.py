"""Processes that tests left behind. Each carries its run's mark in its environment.

A run ends what it has started; what an interrupted run could not end, the next run does.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

RUN = "REDRAFT_EDITOR_TESTS"
"""Names, in the environment, the process of the run that something belongs to."""
TEST = "REDRAFT_EDITOR_TEST"
"""Names the test, for what no other test may use."""

GRACE_S = 5.0


def begin_run() -> None:
    """Mark all that is started from now on, and end what runs that are over have left."""
    end(carrying(RUN, lambda owner: not Path("/proc", owner).exists()))
    os.environ[RUN] = str(os.getpid())


def end_run() -> None:
    """End everything that this run has started."""
    end(carrying(RUN, str(os.getpid()).__eq__) - {os.getpid()})


def mark_of(name: str) -> str:
    """What a test of this run marks its processes with: another run may be at the same test."""
    return f"{os.getpid()} {name}"


def end_test(name: str) -> None:
    """End everything that a test of this run has started."""
    end(carrying(TEST, mark_of(name).__eq__) - {os.getpid()})


def carrying(variable: str, wanted: Callable[[str], bool]) -> set[int]:
    """Processes in whose environment a variable has a wanted value."""
    start = f"{variable}=".encode()
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            for word in (process / "environ").read_bytes().split(b"\0"):
                if word.startswith(start) and wanted(word[len(start) :].decode()):
                    found.add(int(process.name))
    return found


def alive(processes: Iterable[int]) -> set[int]:
    """Those that still run; one that has ended and is not yet waited for does not."""
    found = set()
    for process in processes:
        with suppress(OSError):
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX":
                found.add(process)
    return found


def end(processes: Iterable[int], grace_s: float = GRACE_S) -> None:
    """Ask processes to end, and kill those that have not after a while."""
    left = alive(processes)
    _send(left, signal.SIGCONT)
    _send(left, signal.SIGTERM)
    left = still_alive(left, grace_s)
    _send(left, signal.SIGKILL)
    still_alive(left, grace_s)


def still_alive(processes: Iterable[int], grace_s: float = GRACE_S) -> set[int]:
    """Those that have not ended by themselves after a while."""
    left = set(processes)
    limit = time.monotonic() + grace_s
    while (left := alive(left)) and time.monotonic() < limit:
        time.sleep(0.02)
    return left


def _send(processes: Iterable[int], what: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, what)
