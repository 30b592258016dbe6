"""The first start: what is compiled for this machine is compiled by several processes at once."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from accel.native.cpu_features import cores

logger = logging.getLogger(__name__)

MOST_PROCESSES = 4
"""Each holds some 400 MB, and there are no more parts that take long."""
LOOK_S = 0.1
LONGEST_S = 900.0
"""A process that takes longer is ended; what it was to compile is compiled where it is called."""


@dataclass(frozen=True, slots=True)
class Part:
    """``python -m module *arguments`` compiles it.

    seconds: about how long a core takes for it and for what waits for it; after: names of the parts
    that it calls, which are compiled by then.
    """

    name: str
    module: str
    arguments: tuple[str, ...]
    seconds: float
    after: frozenset[str] = frozenset()


def compile_at_once(parts: list[Part], told: Callable[[str], None]) -> None:
    """Compile parts, the longest first, each in a process of its own and on a core of its own.

    ``told`` is told how far it is. A part that fails is left to who calls it: that is slow, but
    says what is wrong.
    """
    most = min(cores(), MOST_PROCESSES)
    if most < 2 or len(parts) < 2:
        return
    left = sorted(parts, key=lambda part: -part.seconds)
    running: dict[str, subprocess.Popen[bytes]] = {}
    ends = time.monotonic() + LONGEST_S
    try:
        while left or running:
            waits_for = {part.name for part in left} | set(running)
            ready = [part for part in left if not part.after & waits_for]
            for part in ready[: most - len(running)]:
                left.remove(part)
                running[part.name] = _start(part)
            done = len(parts) - len(waits_for)
            told(f"compiling for this machine, this once: {done} of {len(parts)} parts")
            if not _wait_for_one(running, ends):
                logger.warning("compiling %s takes too long", ", ".join(running))
                return
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def _start(part: Part) -> subprocess.Popen[bytes]:
    # Its input stays open as long as this process lives.
    return subprocess.Popen(
        [sys.executable, "-m", "lsp_server.engine.compiling", part.module, *part.arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )


def _wait_for_one(running: dict[str, subprocess.Popen[bytes]], ends: float) -> bool:
    """Wait until a process ends, and forget it; whether one did in time."""
    while all(process.poll() is None for process in running.values()):
        if time.monotonic() > ends:
            return False
        time.sleep(LOOK_S)
    for name, process in list(running.items()):
        if process.poll() is not None:
            del running[name]
            if process.stdin is not None:
                process.stdin.close()
            if process.returncode:
                logger.warning("compiling %s ended with code %d", name, process.returncode)
    return True


def _end_with_parent() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    os._exit(1)


def main() -> None:
    """Run a module as ``python -m`` does, until the process that wants it is gone."""
    import runpy

    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
