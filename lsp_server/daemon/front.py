"""``redraft serve``: finds or starts the user's daemon and passes bytes. Standard library only.

The front knows nothing of LSP. It ends when the editor or the daemon does; a daemon that died is
told in one line, and the editor starts the next front, which starts the next daemon.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from lsp_server.daemon.address import socket_path
from lsp_server.daemon.lock import LockFile
from lsp_server.daemon.transport import dial
from lsp_server.errors import DaemonUnavailable

START_TIMEOUT_S = 30.0
FORGIVEN_EXITS = 4
"""Editors give a server up that ends five times in three minutes (vscode-languageclient)."""
FORGIVING_S = 180.0
GREETING = b"redraft "


def serve() -> int:
    """Join stdin and stdout to the daemon; 0 when the session ended in order."""
    path = socket_path()
    connection = connect(path, {"command": "lsp"}, start=True)
    assert connection is not None
    threading.Thread(target=pass_input, args=(connection,), daemon=True).start()
    pass_output(connection)
    # A daemon that dies may still seem to listen for a moment, so it has to greet.
    asked = _greeted(path, {"command": "hello"})
    if asked is not None:
        asked.close()
        return _exit(0)
    print("redraft: the daemon ended; see its log (redraft status tells where)", file=sys.stderr)
    sys.stderr.flush()
    _wait_to_be_forgiven(path.with_suffix(f".exits-{os.getppid()}"))
    return _exit(1)


def connect(path: Path, hello: dict[str, Any], start: bool) -> socket.socket | None:
    """A greeted connection to the daemon, which is started when ``start``; else None without one.

    Raises DaemonUnavailable when it cannot be started.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        connection = _greeted(path, hello)
        if connection is not None or not start:
            return connection
        lock = LockFile(path.with_suffix(".start"))
        if lock.acquire(START_TIMEOUT_S):
            try:
                # Another front may have started it while we waited for the lock.
                if not _alive(path):
                    _start_daemon(path, deadline)
            finally:
                lock.release()
        if time.monotonic() > deadline:
            raise DaemonUnavailable(f"the daemon does not start; see the log in {_log_hint()}")


def _greeted(path: Path, hello: dict[str, Any]) -> socket.socket | None:
    """A connection that the daemon has greeted, so that it is known to be served."""
    dialled = dial(path)
    if dialled is None:
        return None
    connection = dialled.connection
    try:
        connection.settimeout(START_TIMEOUT_S)
        connection.sendall(json.dumps({**hello, "token": dialled.token}).encode() + b"\n")
        greeting = b""
        while not greeting.endswith(b"\n"):
            byte = connection.recv(1)
            if not byte:
                return None
            greeting += byte
        connection.settimeout(None)
        return connection if greeting.startswith(GREETING) else None
    except OSError:
        return None


def _alive(path: Path) -> bool:
    """Whether somebody listens on the socket."""
    dialled = dial(path)
    if dialled is None:
        return False
    dialled.connection.close()
    return True


def _start_daemon(path: Path, deadline: float) -> None:
    """Start the daemon and wait until it listens, or until it or the time ends."""
    daemon = subprocess.Popen(
        [sys.executable, "-m", "lsp_server.daemon.host", str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=path.parent,  # private and empty of modules: the current folder is on the import path
        start_new_session=True,
        close_fds=True,
    )
    while time.monotonic() < deadline and daemon.poll() is None:
        if _alive(path):
            return
        time.sleep(0.01)


def pass_input(connection: socket.socket) -> None:
    """Editor to daemon. At the editor's end the daemon is told, and has a second to answer."""
    with contextlib.suppress(OSError):
        while data := os.read(0, 1 << 16):
            connection.sendall(data)
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
    timer = threading.Timer(0.8, os._exit, (0,))
    timer.daemon = True
    timer.start()


def pass_output(connection: socket.socket) -> None:
    """Daemon to editor, until either ends."""
    with contextlib.suppress(OSError):
        while data := connection.recv(1 << 16):
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]


def _wait_to_be_forgiven(record: Path) -> None:
    """Stay so long that the editor does not see more ends than it forgives."""
    now = time.time()
    try:
        times = [float(line) for line in record.read_text().split()]
    except (OSError, ValueError):
        times = []
    times = [moment for moment in times if now - moment < FORGIVING_S]
    if len(times) >= FORGIVEN_EXITS - 1:
        time.sleep(max(0.0, times[-(FORGIVEN_EXITS - 1)] + FORGIVING_S - now))
    with contextlib.suppress(OSError):
        record.write_text(" ".join(map(str, [*times, time.time()])))


def _log_hint() -> str:
    return os.environ.get("REDRAFT_LOG_DIR") or "the folder that `redraft doctor` names"


def _exit(code: int) -> int:
    # The thread that reads stdin cannot be joined: it waits for an editor that may never write.
    sys.stdout.flush()
    os._exit(code)
