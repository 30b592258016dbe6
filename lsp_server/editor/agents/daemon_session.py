"""A session with the user's daemon, as an editor has one: the same models, the same indexes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsp_server.editor.daemon.address import socket_path
from lsp_server.editor.daemon.front import connect, lsp_hello
from lsp_server.shared.errors import DaemonUnavailable, EditRefused, ProtocolError
from lsp_server.shared.processes.framing import MessageSplitter, lsp_message
from lsp_server.shared.version import VERSION

QUIET = {"completion": {"enabled": False}, "nextEdits": {"enabled": False}}
"""Nobody types here: nothing is computed ahead."""


def why_not_ready(status: dict[str, Any]) -> str:
    """Return what the server of a ``status`` still does, or why it fails; empty if it is ready."""
    if status["state"] == "ready" and status["models"]["completion"]["state"] == "ready":
        return f"compiling {status['compiling']}, this once" if status["compiling"] else ""
    return f"{status['message'] or 'starting'} {status['remedy']}".strip()


class DaemonSession:
    """Begins with the first request, and again where the daemon ended. For one event loop."""

    def __init__(self, folders: Sequence[Path], model: str = "", **parameters: Any) -> None:
        """``model``: that of edits; empty: what the user chose. ``parameters``: of ``initialize``,
        in place of those of agents."""
        self.doing = "starting the daemon"
        self.prepares = True
        """What a request may wait for, and whether the model or an index has yet to be ready."""
        self._folders = folders
        self._settings = {**QUIET, "model": {"path": model}} if model else QUIET
        self._parameters = parameters
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._begun: asyncio.Future[None] | None = None

    async def request(self, method: str, params: Any) -> Any:
        """Return the daemon's answer. Raises EditRefused with its words, DaemonUnavailable. A
        request that is given up is cancelled there."""
        await self.join()
        return await self._ask(method, params)

    async def notify(self, method: str, params: Any) -> None:
        """Tell the daemon something. Raises DaemonUnavailable."""
        await self.join()
        self._send({"method": method, "params": params})

    async def close(self) -> None:
        """Leave as an editor does."""
        if self._writer is not None:
            with contextlib.suppress(EditRefused, DaemonUnavailable, asyncio.TimeoutError):
                await asyncio.wait_for(self._ask("shutdown", None), 2)
                self._send({"method": "exit"})
            self._writer.close()
        if self._reading is not None:
            self._reading.cancel()

    async def join(self) -> None:
        """Be a client of the daemon. Raises DaemonUnavailable."""
        beginning = self._begun
        if beginning is None or (
            beginning.done() and (beginning.exception() is not None or self._has_ended)
        ):
            beginning = self._begun = asyncio.ensure_future(self._begin())
        # Whoever waits for it may be cancelled, and others go on waiting.
        await asyncio.shield(beginning)

    @property
    def _has_ended(self) -> bool:
        return self._reading is None or self._reading.done()

    async def _begin(self) -> None:
        connection = await asyncio.to_thread(connect, socket_path(), lsp_hello(), True)
        assert connection is not None
        connection.setblocking(False)
        reader, self._writer = await asyncio.open_connection(sock=connection)
        self._reading = asyncio.ensure_future(self._read(reader))
        folders = [{"uri": folder.as_uri(), "name": folder.name} for folder in self._folders]
        await self._ask(
            "initialize",
            {
                "processId": os.getpid(),
                "clientInfo": {"name": "redraft mcp", "version": VERSION},
                "capabilities": {},
                "rootUri": None,
                "workspaceFolders": folders,
                "initializationOptions": {"settings": self._settings},
                **self._parameters,
            },
        )
        self._send({"method": "initialized", "params": {}})

    async def _ask(self, method: str, params: Any) -> Any:
        number = next(self._ids)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            self._send({"id": number, "method": method, "params": params})
            return await answer
        except asyncio.CancelledError:
            self._send({"method": "$/cancelRequest", "params": {"id": number}})
            raise
        finally:
            del self._answers[number]

    def _send(self, message: dict[str, Any]) -> None:
        assert self._writer is not None
        self._writer.write(lsp_message(json.dumps({"jsonrpc": "2.0", **message}).encode()))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        splitter = MessageSplitter()
        try:
            while data := await reader.read(1 << 16):
                for item in splitter.feed(data):
                    if not isinstance(item, ProtocolError):
                        self._take(json.loads(item))
        except ConnectionError:
            pass
        finally:
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(DaemonUnavailable("the daemon ended; try again"))

    def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            if message["method"] == "redraft/status":
                status = message["params"]
                self.doing = why_not_ready(status) or status["message"] or "the model writes"
                self.prepares = status["state"] in ("loading", "indexing")
            if "id" in message:
                self._send({"id": message["id"], "result": None})
            return
        answer = self._answers.get(message["id"])
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(EditRefused(message["error"].get("message", "it failed")))
        else:
            answer.set_result(message.get("result"))
