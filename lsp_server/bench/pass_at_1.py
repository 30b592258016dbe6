"""Running a case's own tests on what a model wrote, in a process of its own with limits.

The tests are other people's code: they get no environment, an empty folder, little time and
memory, no files above one megabyte, and no process outlives them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from lsp_server.errors import BenchError

SECONDS = 10
MEMORY_BYTES = 1 << 30
FILE_BYTES = 1 << 20

_RUNNER = """
import resource, sys
for limit, value in ((resource.RLIMIT_CPU, {seconds}), (resource.RLIMIT_AS, {memory}),
                     (resource.RLIMIT_FSIZE, {file}), (resource.RLIMIT_NPROC, 0),
                     (resource.RLIMIT_CORE, 0)):
    try:
        resource.setrlimit(limit, (value, value))
    except (OSError, ValueError):
        pass
source = sys.stdin.buffer.read().decode()
exec(compile(source, "answer", "exec"), {{"__name__": "__main__"}})
"""


def tests_of(cases: Path) -> dict[str, str]:
    """Test code of every case by its id. Raises BenchError where a case has none."""
    rows = [json.loads(line) for line in cases.read_text("utf-8").splitlines() if line.strip()]
    missing = next((row["id"] for row in rows if not row.get("tests")), None)
    if missing is not None:
        raise BenchError(f"{cases} has no tests for {missing}; leave --pass-at-1 out")
    return {row["id"]: row["tests"] for row in rows}


def passes(answer: str, tests: str, seconds: int = SECONDS) -> bool:
    """Whether ``answer`` followed by ``tests`` runs to its end without an error."""
    runner = _RUNNER.format(seconds=seconds, memory=MEMORY_BYTES, file=FILE_BYTES)
    with tempfile.TemporaryDirectory(prefix="redraft-tests-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", runner],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "HOME": folder, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        try:
            process.communicate(f"{answer}\n\n{tests}\n".encode("utf-8", "replace"), 2 * seconds)
        except subprocess.TimeoutExpired:
            return False
        finally:
            # Whatever it started stands in its session and goes with it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode == 0
