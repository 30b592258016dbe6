"""``redraft serve``: finds or starts the user's daemon and passes messages, as long as the editor
lives. When the daemon dies it starts another. Standard library only."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel.native.python_process import python_command
from lsp_server.editor.daemon.address import socket_path
from lsp_server.editor.daemon.server_environment import server_environment, without_server
from lsp_server.editor.daemon.transport import dial
from lsp_server.shared.errors import DaemonUnavailable, ProtocolError
from lsp_server.shared.printable import say
from lsp_server.shared.processes.back_off import BackOff
from lsp_server.shared.processes.framing import MessageSplitter, lsp_message
from operating_system.file_lock import LockFile
from operating_system.processes import start_detached

if TYPE_CHECKING:
    from lsp_server.editor.daemon.session_memory import Message, SessionMemory

START_TIMEOUT_S = 30.0
SHORTEST_LIFE_S = 45.0
"""A front without a daemon ends no sooner: editors give up a server that ends five times in three
minutes (vscode-languageclient)."""
FIRST_BACK_OFF_S = 0.5
LONGEST_BACK_OFF_S = 30.0
RECENT_S = 180.0
DEATHS_SHOWN = 3
"""From so many deaths in three minutes on the user is told, not only the log."""
CONTENT_MODIFIED = -32801
"""Editors take it as "ask again", not as a failure."""
GREETING = b"redraft "
INFO, WARNING = 3, 2


def serve() -> int:
    """Join stdin and stdout to the daemon until the editor ends; 0 when it ended in order."""
    started = time.monotonic()
    path = socket_path()
    try:
        connection = connect(path, lsp_hello(), start=True)
    except DaemonUnavailable as error:
        say(f"redraft: {error}", file=sys.stderr, flush=True)
        _wait_for_editor(started + SHORTEST_LIFE_S - time.monotonic())
        return _exit(1)
    assert connection is not None
    from lsp_server.editor.daemon.session_memory import SessionMemory

    front = Front(path, connection, SessionMemory())
    threading.Thread(target=front.pass_input, daemon=True).start()
    front.pass_output()
    return _exit(0)


class Front:
    """One editor's session, over one daemon after another."""

    def __init__(self, path: Path, connection: socket.socket, memory: SessionMemory) -> None:
        self._path = path
        self._connection: socket.socket | None = connection
        self._memory = memory
        self._lock = threading.Lock()
        """Held while a message is noted and sent, so that a new daemon is told all of them once."""
        self._output = threading.Lock()
        self._deaths: list[float] = []
        self._editor_ended = False

    def pass_input(self) -> None:
        """Editor to daemon. At the editor's end the daemon is told, and has a second to answer."""
        splitter = MessageSplitter()
        with contextlib.suppress(OSError):
            while data := os.read(0, 1 << 16):
                for item in splitter.feed(data):
                    if isinstance(item, ProtocolError):
                        error = {"code": item.code, "message": str(item)}
                        self._tell([{"id": None, "error": error}])
                    else:
                        self._pass_on(item)
        self._editor_ended = True
        with contextlib.suppress(OSError), self._lock:
            if self._connection is not None:
                self._connection.shutdown(socket.SHUT_WR)
        timer = threading.Timer(0.8, os._exit, (0,))
        timer.daemon = True
        timer.start()

    def _pass_on(self, body: bytes) -> None:
        with self._lock:
            self._memory.note_sent(body)
            if self._connection is not None:
                # A daemon that died is noticed by reading; the message is noted already.
                with contextlib.suppress(OSError):
                    self._connection.sendall(lsp_message(body))
            else:
                self._tell(self._memory.farewell(CONTENT_MODIFIED, "the daemon starts again"))
                if self._memory.ending:
                    os._exit(0)

    def pass_output(self) -> None:
        """Daemon to editor, until the editor ends or says goodbye."""
        while True:
            assert self._connection is not None
            self._pass_from(self._connection)
            if self._editor_ended or self._memory.ending:
                return
            self._reconnect()

    def _pass_from(self, connection: socket.socket) -> None:
        splitter = MessageSplitter()
        with contextlib.suppress(OSError):
            while data := connection.recv(1 << 16):
                for item in splitter.feed(data):
                    if not isinstance(item, ProtocolError) and self._memory.note_received(item):
                        self._write(lsp_message(item))

    def _reconnect(self) -> None:
        """Have another daemon and tell it the session; patient when one after another dies."""
        with self._lock:
            assert self._connection is not None
            self._connection.close()
            self._connection = None
            self._tell(self._memory.farewell(CONTENT_MODIFIED, "the daemon ended; ask again"))
        while True:
            wait_s = self._back_off()
            self._say_what_happened(wait_s)
            time.sleep(wait_s)
            with contextlib.suppress(DaemonUnavailable, OSError):
                connection = connect(self._path, lsp_hello(), start=True)
                assert connection is not None
                with self._lock:
                    for message in self._memory.replay():
                        connection.sendall(lsp_message(_body(message)))
                    self._connection = connection
                return

    def _back_off(self) -> float:
        now = time.monotonic()
        self._deaths = [moment for moment in self._deaths if now - moment < RECENT_S]
        back_off = BackOff(FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S)
        back_off.failures = len(self._deaths)
        self._deaths.append(now)
        return back_off.wait_s

    def _say_what_happened(self, wait_s: float) -> None:
        count = len(self._deaths)
        when = f"the next start is in {wait_s:.0f} s" if wait_s >= 1 else "it is started again"
        times = f"{count} times in three minutes" if count > 1 else "unexpectedly"
        text = f"Redraft: the daemon ended {times}; {when}; its log is in {_log_hint()}"
        is_shown = count >= DEATHS_SHOWN
        method = "window/showMessage" if is_shown else "window/logMessage"
        kind = WARNING if is_shown else INFO
        self._tell([{"method": method, "params": {"type": kind, "message": text}}])
        say(text, file=sys.stderr, flush=True)

    def _tell(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._write(lsp_message(_body(message)))

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        with self._output:
            while view:
                view = view[os.write(1, view) :]


def lsp_hello() -> dict[str, Any]:
    """Return the greeting of a client that speaks LSP."""
    return {"command": "lsp", "server": server_environment()}


def _body(message: Message) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode("ascii")


def _wait_for_editor(seconds: float) -> None:
    ended = threading.Event()

    def read() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 1 << 16):
                continue
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    ended.wait(max(0.0, seconds))


def connect(path: Path, hello: dict[str, Any], start: bool) -> socket.socket | None:
    """Return a greeted connection to the daemon, which is started when ``start``; else None without
    one. Raises DaemonUnavailable when it cannot be started."""
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
    """Return a connection that the daemon has greeted, so that it is known to be served."""
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
    dialled = dial(path)
    if dialled is None:
        return False
    dialled.connection.close()
    return True


def _start_daemon(path: Path, deadline: float) -> None:
    """Start the daemon and wait until it listens, or until it or the time ends."""
    # Its folder outlives the one that the editor started in.
    command = python_command("lsp_server.editor.daemon.host", str(path))
    daemon = start_detached(command, path.parent, without_server())
    while time.monotonic() < deadline and daemon.poll() is None:
        if _alive(path):
            return
        time.sleep(0.01)


def _log_hint() -> str:
    return os.environ.get("REDRAFT_LOG_DIR") or "the folder that `redraft doctor` names"


def _exit(code: int) -> int:
    # The thread that reads stdin cannot be joined: it waits for an editor that may never write.
    sys.stdout.flush()
    os._exit(code)
