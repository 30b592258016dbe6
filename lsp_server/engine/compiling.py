"""Compiles code for this machine at the first start, with a process on every core."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from accel.native.python_process import python_command
from operating_system.machine import cores
from operating_system.processes import lower_priority

logger = logging.getLogger(__name__)

MOST_PROCESSES = 4
"""Each holds some 500 MB, and there are no more tasks that take long."""
LOOK_S = 0.1
LONGEST_S = 900.0
"""A process that takes longer is ended; what it was to compile is compiled where it is called."""
BEGIN_S = 1.0
"""About how long a process takes to import what compiles."""


@dataclass(frozen=True, slots=True)
class CompileTask:
    """A module that compiles it when it is run. seconds: about how long a core takes for it."""

    name: str
    module: str
    arguments: tuple[str, ...]
    seconds: float


class ParallelCompile:
    """Tasks that are compiled in a process for every core, each about as long as the others. A task
    that fails is left to who calls it: that is slow, but says what is wrong."""

    def __init__(self, tasks: list[CompileTask]) -> None:
        self.total = len(tasks)
        shares = _shared(tasks, min(cores(), MOST_PROCESSES))
        self._left = {", ".join(task.name for task in share): len(share) for share in shares}
        self._ends = time.monotonic() + LONGEST_S
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        for names, share in zip(self._left, shares, strict=True):
            self._running[names] = _start(share)

    @property
    def done(self) -> int:
        """The number of tasks that are compiled, or have failed."""
        for name, process in list(self._running.items()):
            if process.poll() is not None:
                _let_go(self._running.pop(name))
                if process.returncode:
                    logger.warning("compiling %s ended with code %d", name, process.returncode)
        return self.total - sum(self._left[name] for name in self._running)

    def wait(self, report: Callable[[int, int], None]) -> None:
        """Wait until all are compiled; ``report`` is told again and again how many are."""
        while (done := self.done) < self.total and time.monotonic() < self._ends:
            report(done, self.total)
            time.sleep(LOOK_S)
        report(done, self.total)
        if self._running:
            logger.warning("compiling %s takes too long", " and ".join(self._running))

    def close(self) -> None:
        """End what still runs."""
        while self._running:
            process = self._running.popitem()[1]
            process.kill()
            _let_go(process)


def compile_at_once(tasks: list[CompileTask], report: Callable[[str], None]) -> None:
    """Compile tasks by ``ParallelCompile``, where several cores do; a single one, too, since who
    compiles keeps some hundred megabytes of it. ``report`` is told how far it is."""
    if min(cores(), MOST_PROCESSES) < 2 or not tasks:
        return
    message = ""

    def tell(done: int, total: int) -> None:
        nonlocal message
        before, message = message, f"compiling for this machine, this once: {done} of {total} parts"
        if message != before and done < total:
            report(message)

    with contextlib.closing(ParallelCompile(tasks)) as compiling:
        compiling.wait(tell)


class CompilingBehind:
    """Tasks that another process compiles meanwhile, for as long as nothing needs them."""

    def __init__(self, tasks: list[CompileTask], on_end: Callable[[], None] = lambda: None) -> None:
        """``on_end`` is called in a thread of its own once they are compiled, or have failed."""
        self._process = _start(tasks, patient=True) if tasks else None
        if self._process is not None:
            threading.Thread(target=self._tell, args=(on_end,), daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Return True if all tasks are compiled, or have failed."""
        return self._process is None or self._process.poll() is not None

    def _tell(self, on_end: Callable[[], None]) -> None:
        assert self._process is not None
        self._process.wait()
        on_end()

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            _let_go(self._process)


def _shared(tasks: list[CompileTask], most: int) -> list[list[CompileTask]]:
    """Distribute tasks over ``most`` processes: the longest first, to the least loaded."""
    shares: list[list[CompileTask]] = [[] for _ in range(min(most, len(tasks)))]
    for task in sorted(tasks, key=lambda task: -task.seconds):
        min(shares, key=lambda share: sum(BEGIN_S + task.seconds for task in share)).append(task)
    return shares


def _start(share: list[CompileTask], *, patient: bool = False) -> subprocess.Popen[bytes]:
    """patient: others that need the core go before it."""
    commands = json.dumps([patient, [[task.module, *task.arguments] for task in share]])
    # Its input stays open as long as this process lives.
    return subprocess.Popen(
        python_command("lsp_server.engine.compiling", commands),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )


def _let_go(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _end_with_parent() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    os._exit(1)


def main() -> None:
    """Run modules as ``python -m`` does, until the process that asked for it is gone."""
    import runpy

    from accel.native.link_time import optimise_at_link_time

    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Little of what compiling makes is garbage, and this process does not live long.
    gc.disable()
    optimise_at_link_time()
    patient, commands = json.loads(sys.argv[1])
    if patient:
        lower_priority(19)
    failed = False
    for command in commands:
        sys.argv = command
        try:
            runpy.run_module(command[0], run_name="__main__", alter_sys=True)
        except Exception:
            traceback.print_exc()
            failed = True
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
