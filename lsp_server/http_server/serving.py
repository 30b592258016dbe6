"""The application in uvicorn: its socket, its first line, and its end."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

DRAIN_S = 30
"""Requests under way when the end is asked for may take so long."""
HEADER_BYTES = 32 << 10


class HttpServer(uvicorn.Server):
    """Prints where it answers as its first line, and drains when it is told to end."""

    def __init__(self, config: uvicorn.Config, url: str) -> None:
        super().__init__(config)
        self._url = url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Load the application and accept connections."""
        await super().startup(sockets)
        if self.started:
            print(json.dumps({"url": self._url}), flush=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take no further connection and end with the last request: the exit code is 0."""
        self.should_exit = True


def serve(
    app: ASGIApp,
    host: str,
    port: int,
    certificate: str | None = None,
    private_key: str | None = None,
) -> bool:
    """Serve until SIGTERM or SIGINT. Returns whether it came up. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=1024) as listening:
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=HEADER_BYTES,
            limit_concurrency=1024,
            timeout_graceful_shutdown=DRAIN_S,
            ssl_certfile=certificate,
            ssl_keyfile=private_key,
        )
        server = HttpServer(config, _url(host, listening.getsockname()[1], bool(certificate)))
        with suppress(SystemExit):
            # So uvicorn ends where the application does not start.
            server.run(sockets=[listening])
    return server.started


def _url(host: str, port: int, secure: bool) -> str:
    scheme = "https" if secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
