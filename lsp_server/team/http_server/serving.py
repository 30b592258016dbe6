"""Runs the application in uvicorn: its socket, its first line, and its end."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from lsp_server.shared.printable import say
from lsp_server.team.http_server.rate_limits import KEEP_ALIVE_S

DRAIN_S = 30
"""Requests under way when the end is asked for may take so long."""
HEADER_BYTES = 32 << 10
MOST_CONNECTIONS = 1024


@dataclass(frozen=True, slots=True)
class Listening:
    """The address of a server; port 0 is any that is free. With PEM files it speaks https."""

    host: str
    port: int
    certificate: str | None = None
    private_key: str | None = None

    def open(self) -> socket.socket:
        """Return a listening socket. Raises OSError."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        return socket.create_server((self.host, self.port), family=family, backlog=MOST_CONNECTIONS)

    def url(self, opened: socket.socket) -> str:
        """Return the address by which clients call it."""
        scheme = "https" if self.certificate else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{opened.getsockname()[1]}"

    def config(self, app: ASGIApp, **options: Any) -> uvicorn.Config:
        """uvicorn's settings: one parser, bounded headers, nothing printed, nothing told."""
        return uvicorn.Config(
            app,
            loop="asyncio",
            http="h11",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=HEADER_BYTES,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_S,
            ssl_certfile=self.certificate,
            ssl_keyfile=self.private_key,
            **options,
        )


class AdminServer(uvicorn.Server):
    """The server of the admin address, which ends with the other one."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the other server's."""
        yield


class HttpServer(uvicorn.Server):
    """Prints where it answers as its first line, and drains when it is told to end."""

    def __init__(
        self,
        config: uvicorn.Config,
        first_line: dict[str, str],
        admin: tuple[AdminServer, socket.socket] | None,
    ) -> None:
        """``first_line``: the first line."""
        super().__init__(config)
        self._first_line = first_line
        self._admin = admin
        self._serving_admin: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Load the application and accept connections."""
        await super().startup(sockets)
        if not self.started:
            return
        if self._admin is not None:
            server, opened = self._admin
            self._serving_admin = asyncio.ensure_future(server.serve(sockets=[opened]))
        say(json.dumps(self._first_line), flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what is under way, then end; with ``force_exit`` end the engine that it is for."""
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()
        if self._admin is not None and self._serving_admin is not None:
            self._admin[0].should_exit, self._admin[0].force_exit = True, self.force_exit
            await self._serving_admin

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take no further connection and end with the last request; told again, end at once.
        The exit code is 0."""
        if not self.started:
            raise KeyboardInterrupt
        self.force_exit = self.should_exit
        self.should_exit = True


def serve(app: ASGIApp, address: Listening, admin: ASGIApp, admin_at: Listening | None) -> bool:
    """Serve until SIGTERM or SIGINT. Returns whether it came up. Raises OSError."""
    with ExitStack() as stack:
        opened = stack.enter_context(address.open())
        first_line = {"url": address.url(opened)}
        beside = None
        if admin_at is not None:
            admin_opened = stack.enter_context(admin_at.open())
            first_line["admin"] = admin_at.url(admin_opened)
            beside = AdminServer(admin_at.config(admin, lifespan="off")), admin_opened
        config = address.config(app, lifespan="on", timeout_graceful_shutdown=DRAIN_S)
        server = HttpServer(config, first_line, beside)
        with suppress(SystemExit):
            # So uvicorn ends where the application does not start.
            server.run(sockets=[opened])
    return server.started
