"""The daemon: one process for each user and build that serves all fronts. It holds a lock for as
long as it lives, and only then unlinks a stale socket and binds. Loads no torch."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.editor.daemon.address import build_id, make_private
from lsp_server.editor.daemon.transport import listen, uses_loopback
from lsp_server.shared.errors import UnsafeSocketFolder
from lsp_server.shared.processes.framing import lsp_message
from operating_system.file_lock import LockFile
from operating_system.processes import allow_many_files, is_same_user, on_end_signal, stay_quick

if TYPE_CHECKING:
    from lsp_server.editor.hub.hub import Hub

logger = logging.getLogger(__name__)

IDLE_EXIT_S = 600.0
CHECK_EVERY_S = 1.0
"""A socket that is gone is made again before most editors look for it."""
LOCK_WAIT_S = 15.0
MAX_HELLO_BYTES = 4096
GOODBYE = b'{"jsonrpc":"2.0","method":"redraft/stopped"}'


def idle_exit_s() -> float:
    """Return the seconds that the daemon stays without clients."""
    return float(os.environ.get("REDRAFT_IDLE_EXIT_S", IDLE_EXIT_S))


class Host:
    """Accepts fronts on a socket until it has been idle for long."""

    def __init__(self, path: Path, hub: Hub) -> None:
        self._path = path
        self._hub = hub
        self._build = build_id()
        self._stop = asyncio.Event()
        self._idle_since = time.monotonic()
        self._inode = 0
        self._token = ""
        self._connections = 0
        self._servers: list[asyncio.Server] = []
        self._fronts: set[asyncio.StreamWriter] = set()

    async def run(self) -> None:
        """Serve until idle, outdated or stopped."""
        await self._listen()
        loop = asyncio.get_running_loop()
        on_end_signal(self._stop.set, loop)
        watching = asyncio.ensure_future(self._hub.watch())
        await self._until_done()
        self._unlink()
        for server in self._servers:
            server.close()
        self._say_goodbye()
        watching.cancel()
        await self._hub.close()

    async def _listen(self) -> None:
        """Take the address. An older socket stays, and no client finds it any more."""
        listener, self._token = listen(self._path)
        self._servers.append(await asyncio.start_server(self._accept, sock=listener))
        self._inode = os.stat(self._path).st_ino

    def _say_goodbye(self) -> None:
        """Fronts that see no goodbye take the daemon's end for an accident, and start another."""
        for front in self._fronts:
            front.write(lsp_message(GOODBYE))
            front.close()

    def _unlink(self) -> None:
        # Only our own socket: somebody may have removed it and another daemon be there.
        # A front that reads the address on Windows has the file stay, and finds nobody there.
        with contextlib.suppress(OSError):
            if os.stat(self._path).st_ino == self._inode:
                self._path.unlink()

    async def _until_done(self) -> None:
        while not self._stop.is_set():
            check_s = min(CHECK_EVERY_S, idle_exit_s())
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stop.wait(), check_s)
            if self._connections == 0 and self._may_leave():
                logger.info("no clients: the daemon leaves")
                return
            if self._connections and not self._path.exists():
                # Whoever cleans temporary folders took it. A new editor shall find us.
                with contextlib.suppress(OSError, UnsafeSocketFolder):
                    make_private(self._path.parent)
                    await self._listen()

    def _may_leave(self) -> bool:
        """Return if the daemon was idle for long, or cannot be found any more: other code is
        installed, or the socket is gone."""
        if time.monotonic() - self._idle_since > idle_exit_s():
            return True
        try:
            lost = os.stat(self._path).st_ino != self._inode
        except FileNotFoundError:
            lost = True
        return lost or build_id() != self._build

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if _is_ours(writer):
                await self._greet(reader, writer)
        except (
            ConnectionError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            ValueError,
        ):
            pass
        except Exception:
            logger.exception("a connection failed")
        finally:
            self._connections -= 1
            self._idle_since = time.monotonic()
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readuntil(b"\n")
        hello: dict[str, Any] = json.loads(line[:MAX_HELLO_BYTES])
        if not secrets.compare_digest(str(hello.get("token", "")), self._token):
            return
        writer.write(f"redraft {self._build} {os.getpid()}\n".encode())
        command = hello.get("command")
        if command == "lsp":
            from lsp_server.editor.daemon.connection import serve_connection

            self._fronts.add(writer)
            try:
                await serve_connection(reader, writer, self._hub, _environment(hello))
            finally:
                self._fronts.discard(writer)
        elif command == "status":
            values = {**self._hub.status(), "connections": self._connections}
            writer.write(json.dumps(values).encode())
        elif command == "models":
            self._hub.choices_changed()
            writer.write(json.dumps({"clients": len(self._hub.clients)}).encode())
        elif command == "stop":
            writer.write(json.dumps({"stopped": os.getpid()}).encode())
            self._stop.set()


def _environment(hello: dict[str, Any]) -> dict[str, str]:
    """Return the variables of a front's environment that name a server."""
    values = hello.get("server")
    values = values if isinstance(values, dict) else {}
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _is_ours(writer: asyncio.StreamWriter) -> bool:
    peer = writer.get_extra_info("socket")
    return peer is None or uses_loopback() or is_same_user(peer)


def main(path: Path) -> int:
    """Serve on ``path``; 0 also when another daemon already does."""
    lock = LockFile(path.with_suffix(".lock"))
    if not lock.acquire(LOCK_WAIT_S):
        return 0
    os.umask(0o077)
    allow_many_files()
    stay_quick("answers an editor")
    from lsp_server.shared.processes.log import start_log

    start_log("daemon")
    logger.info("daemon %s starts", os.getpid())
    from lsp_server.editor.completion.acceptance_rates import AcceptanceRates, acceptance_file
    from lsp_server.editor.daemon.connection import warm_up
    from lsp_server.editor.hub.hub import Hub
    from lsp_server.models.setup_question import SetupQuestion, answer_file
    from lsp_server.text.documents.allowed_files import AllowedFiles, allowed_file

    warm_up()

    async def serve() -> None:
        await Host(
            path,
            Hub(
                acceptance=AcceptanceRates(acceptance_file()),
                allowed=AllowedFiles(allowed_file()),
                question=SetupQuestion(answer_file()),
            ),
        ).run()

    asyncio.run(serve())
    _leave(path, lock)
    return 0


def _leave(path: Path, lock: LockFile) -> None:
    """Let the daemon's lock go, and delete temporary files of a folder that no process uses."""
    starting = LockFile(path.with_suffix(".start"))
    if path.parent.parent != Path(tempfile.gettempdir()) or not starting.acquire():
        lock.release()
        return
    lock.remove()
    starting.remove()
    with contextlib.suppress(OSError):
        path.parent.rmdir()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
