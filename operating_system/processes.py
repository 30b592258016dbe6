"""Starting, ending and limiting processes on each system. Standard library only, but for things
that Windows and macOS lack."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from operating_system import macos
from operating_system.system import is_linux, is_macos, is_windows

if TYPE_CHECKING:
    import asyncio

_NO_WINDOW, _NEW_GROUP, _OUT_OF_JOB = 0x08000000, 0x00000200, 0x01000000
"""``CREATE_NO_WINDOW``, ``CREATE_NEW_PROCESS_GROUP`` and ``CREATE_BREAKAWAY_FROM_JOB``."""
_BELOW_NORMAL = 0x4000
LOOK_S = 0.05
MANY_FILES = 4096
"""Files and connections that a process may have open: ``launchd`` starts an editor with 256."""


def start_detached(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one, its terminal and its editor. Raises OSError."""
    options: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "cwd": folder,
        "env": environment,
        "close_fds": True,
    }
    if not is_windows():
        return subprocess.Popen(command, start_new_session=True, **options)
    # With a console that nobody sees, since each process that it starts would open one of its own.
    flags = _NO_WINDOW | _NEW_GROUP
    try:
        return subprocess.Popen(command, creationflags=flags | _OUT_OF_JOB, **options)
    except PermissionError:
        # The editor's job keeps its processes.
        return subprocess.Popen(command, creationflags=flags, **options)


def lower_priority(steps: int) -> None:
    """Let others go first, where the system can; ``steps``: of niceness, 19 at most."""
    with contextlib.suppress(OSError):
        if is_windows():
            import psutil

            psutil.Process().nice(_BELOW_NORMAL)
        else:
            os.nice(steps)


def lower_thread_priority(steps: int) -> None:
    """``lower_priority`` for the thread that calls it alone, where the system can."""
    if is_linux():
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), steps)


def stay_quick(reason: str) -> None:
    """Have the system leave this process as quick as it is while its editor is hidden, where it
    would not (macOS). reason: for who looks at what runs."""
    if is_macos():
        with contextlib.suppress(OSError, AttributeError):
            macos.stay_quick(reason)


def allow_many_files() -> None:
    """Have this process, and those that it starts, open ``MANY_FILES`` or what it may at most."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, MANY_FILES)
        if soft != resource.RLIM_INFINITY and soft < most:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def on_end_signal(
    called: Callable[[], object], loop: asyncio.AbstractEventLoop | None = None
) -> None:
    """Call when this process is asked to end, on a loop if there is one."""
    for name in ("SIGINT", "SIGBREAK") if is_windows() else ("SIGINT", "SIGTERM"):
        number = getattr(signal, name)
        if loop is None:
            signal.signal(number, lambda *_: called())
        elif is_windows():
            # Its loops take no handlers of signals.
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(called))
        else:
            loop.add_signal_handler(number, called)


def is_same_user(peer: socket.socket) -> bool:
    """Return True if the other end of a Unix socket belongs to the user of this process. On systems
    that cannot tell, only the socket's folder keeps others out."""
    if not is_linux():
        return True
    size = struct.calcsize("3i")
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return bool(struct.unpack("3i", credentials)[1] == os.getuid())


def limit_memory(most_bytes: int) -> None:
    """Bound the address space of this process, and have it leave no dump. Linux alone does so: see
    ``watched``."""
    if sys.platform != "win32":
        import resource

        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))


def limit_time(seconds: int) -> None:
    """End this process after ``seconds`` more seconds of computing. Not on Windows."""
    if sys.platform != "win32":
        import resource

        with contextlib.suppress(ValueError, OSError):
            used = resource.getrusage(resource.RUSAGE_SELF)
            until = int(used.ru_utime + used.ru_stime) + 1 + seconds
            resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))


@contextlib.contextmanager
def watched(process: subprocess.Popen[bytes], seconds: float, most_bytes: int) -> Iterator[None]:
    """Kill a process that, as long as this lasts, takes longer or holds more memory."""
    import psutil

    done = threading.Event()

    def watch() -> None:
        remaining = seconds
        with contextlib.suppress(psutil.Error):
            observed = psutil.Process(process.pid)
            while remaining > 0 and observed.memory_info().rss <= most_bytes:
                if done.wait(min(remaining, LOOK_S)):
                    return
                remaining -= LOOK_S
        process.kill()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
