"""Running a case's own tests on what a model wrote, in a process of its own with limits.

The tests are other people's code: they get no environment, an empty folder of their own as the only
place to write to, little time and memory, no network, no other programs, and no process outlives
them. The kernel keeps them from the network where it lets us ask for that; Python's own audit hook
refuses it everywhere.
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

from lsp_server.shared.errors import BenchError

SECONDS = 10
MEMORY_BYTES = 1 << 30
FILE_BYTES = 1 << 20

_RUNNER = """
import ctypes, os, resource, sys
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
try:
    unshare = ctypes.CDLL(None).unshare
    unshare(NEW_NETWORK) and unshare(NEW_USER | NEW_NETWORK)
except (OSError, AttributeError):
    pass
for limit, value in ((resource.RLIMIT_CPU, {seconds}), (resource.RLIMIT_AS, {memory}),
                     (resource.RLIMIT_FSIZE, {file}), (resource.RLIMIT_NPROC, 0),
                     (resource.RLIMIT_CORE, 0)):
    try:
        resource.setrlimit(limit, (value, value))
    except (OSError, ValueError):
        pass
source = sys.stdin.buffer.read().decode()
home = os.path.realpath(os.getcwd()) + os.sep
def refuse(event, args):
    if event.startswith("socket.") and event != "socket.gethostname":
        raise PermissionError("no network")
    if event in ("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.fork"):
        raise PermissionError("no other programs")
    changed = []
    if event == "open" and isinstance(args[2], int):
        writes = args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        changed = [args[0]] if writes else []
    if event in ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.truncate"):
        changed = args[:2] if event == "os.rename" else args[:1]
    for path in changed:
        if isinstance(path, (str, bytes, os.PathLike)):
            if not os.path.realpath(os.fsdecode(path)).startswith(home):
                raise PermissionError("no files elsewhere")
import __main__
__main__.__file__ = home + "answer.py"
with open(__main__.__file__, "w") as file:
    file.write(source)
sys.addaudithook(refuse)
exec(compile(source, __main__.__file__, "exec"), __main__.__dict__)
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
