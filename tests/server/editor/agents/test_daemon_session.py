"""A session with a daemon that is slow, refuses, dies and comes again."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from lsp_server.editor.agents import daemon_session
from lsp_server.editor.agents.daemon_session import DaemonSession
from lsp_server.shared.errors import DaemonUnavailable, EditRefused
from lsp_server.shared.processes.framing import lsp_message


class Daemon:
    """The other side of one connection."""

    def __init__(self) -> None:
        self.theirs, self._ours = socket.socketpair()

    async def accept(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(sock=self._ours)

    async def read(self, method: str) -> dict[str, Any]:
        """The next message, which is this one."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        body = await self._reader.readexactly(int(head.split(b":")[1].split(b"\r")[0]))
        message: dict[str, Any] = json.loads(body)
        assert message["method"] == method
        return message

    def answer(self, message: dict[str, Any], **told: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}).encode()
        self._writer.write(lsp_message(body))

    async def greet(self) -> None:
        self.answer(await self.read("initialize"), result={"capabilities": {}})
        await self.read("initialized")

    def die(self) -> None:
        self._writer.close()


@pytest.fixture
async def daemons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Daemon]:
    """Daemons that a session of agents joins one after the other."""
    daemons = [Daemon(), Daemon()]
    waiting = iter([daemon.theirs for daemon in daemons])
    monkeypatch.setattr(daemon_session, "connect", lambda *_: next(waiting))
    monkeypatch.setattr(daemon_session, "socket_path", lambda: tmp_path / "daemon.sock")
    for daemon in daemons:
        await daemon.accept()
    return daemons


@pytest.fixture
def session(daemons: list[Daemon], tmp_path: Path) -> DaemonSession:
    return DaemonSession([tmp_path])


async def test_a_caller_that_leaves_while_it_begins_stops_nobody_else(
    session: DaemonSession, daemons: list[Daemon], tmp_path: Path
) -> None:
    (daemon, _) = daemons
    first = asyncio.ensure_future(session.request("one", None))
    greeting = await daemon.read("initialize")
    second = asyncio.ensure_future(session.request("two", None))
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert greeting["params"]["workspaceFolders"][0]["uri"] == tmp_path.as_uri()
    daemon.answer(greeting, result={})
    await daemon.read("initialized")
    daemon.answer(await daemon.read("two"), result="told")
    assert await second == "told"


async def test_a_request_that_is_given_up_is_cancelled_there(
    session: DaemonSession, daemons: list[Daemon]
) -> None:
    (daemon, _) = daemons
    asked = asyncio.ensure_future(session.request("slow", None))
    await daemon.greet()
    number = (await daemon.read("slow"))["id"]
    asked.cancel()
    cancel = await daemon.read("$/cancelRequest")
    assert cancel["params"] == {"id": number}
    # Its answer comes late and is nobody's.
    daemon.answer({"id": number}, error={"code": -32800, "message": "cancelled"})
    other = asyncio.ensure_future(session.request("other", None))
    daemon.answer(await daemon.read("other"), error={"code": -32803, "message": "too long"})
    with pytest.raises(EditRefused, match="too long"):
        await other


async def test_a_daemon_that_died_is_joined_again(
    session: DaemonSession, daemons: list[Daemon]
) -> None:
    first, second = daemons
    asked = asyncio.ensure_future(session.request("one", None))
    await first.greet()
    await first.read("one")
    first.die()
    with pytest.raises(DaemonUnavailable):
        await asked
    again = asyncio.ensure_future(session.request("two", None))
    await second.greet()
    second.answer(await second.read("two"), result=2)
    assert await again == 2
