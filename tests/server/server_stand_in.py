"""A small server that speaks our protocol, or OpenAI's, and keeps what it is asked."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

import uvicorn

from lsp_server.shared.contract.jobs import JobResult, Span

KEY = "plum-key-7d1f"
Send = Callable[[dict[str, Any]], Any]
MODEL = {
    "protocol": 1,
    "model": "small",
    "dtype": "fp32",
    "fills": True,
    "prompt_seconds": [0.001 * step for step in range(1, 21)],
    "max_tokens": 4096,
}


class Server:
    """An ASGI application. What it answers can be changed while it runs."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        """Method, path and body of every request."""
        self.keys: list[str] = []
        self.connections: set[Any] = set()
        """Addresses that requests came from."""
        self.status = 200
        """Another one answers everything."""
        self.headers: dict[str, str] = {}
        self.model: Any = MODEL
        self.pieces = ["total ", "+= ", "area"]
        self.pause = asyncio.Event()
        """Cleared, an answer stops after its first piece."""
        self.pause.set()
        self.breaks_off = False
        self.closed = asyncio.Event()
        """A client closed a connection before its answer was whole."""

    def bodies(self, path: str) -> list[Any]:
        return [body for _, asked, body in self.asked if asked == path]

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.keys.append(headers.get("authorization", ""))
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message.get("more_body"):
                break
        path, method = scope["path"], scope["method"]
        self.connections.add(tuple(scope["client"]))
        self.asked.append((method, path, json.loads(body) if body else None))
        if self.status != 200:
            error = {"error": {"message": f"no, {headers.get('authorization')}"}}
            await self.reply(send, error, self.status, self.headers)
        elif headers.get("authorization") != f"Bearer {KEY}":
            await self.reply(send, {"error": {"message": "unknown key"}}, 401)
        else:
            await self.answer(path, self.asked[-1][2], receive, send)

    async def answer(self, path: str, body: Any, receive: Any, send: Send) -> None:
        if path == "/redraft/v1/model" and self.model is not None:
            await self.reply(send, self.model)
        elif path in ("/redraft/v1/prefill", "/redraft/v1/accepted") and self.model is not None:
            await self.reply(send, {})
        elif path.startswith("/redraft/v1/") and self.model is not None:
            await self.stream(self.events(path, body), receive, send)
        else:
            await self.reply(send, {"error": {"message": "no such path"}}, 404)

    async def events(self, path: str, body: Any) -> AsyncIterator[str]:
        for number, piece in enumerate(self.pieces):
            yield event("spans", [asdict(Span(piece, "model"))])
            if number == 0:
                await self.pause.wait()
                if self.breaks_off:
                    return
        text = "".join(self.pieces)
        result = JobResult(text, [Span(text, "model")], 3, 2, 0.1, 0.0, {"model": 3}, "end")
        yield event("result", asdict(result))

    async def reply(
        self, send: Send, value: Any, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        told = [(name.encode(), text.encode()) for name, text in (headers or {}).items()]
        told.append((b"content-type", b"application/json"))
        await send({"type": "http.response.start", "status": status, "headers": told})
        await send({"type": "http.response.body", "body": json.dumps(value).encode()})

    async def stream(self, parts: AsyncIterator[str], receive: Any, send: Send) -> None:
        told = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": told})
        gone = asyncio.ensure_future(self._until_gone(receive))
        writing = asyncio.ensure_future(self._write(parts, send))
        await asyncio.wait({gone, writing}, return_when=asyncio.FIRST_COMPLETED)
        if not writing.done():
            self.closed.set()
        gone.cancel()
        writing.cancel()

    @staticmethod
    async def _until_gone(receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            continue

    @staticmethod
    async def _write(parts: AsyncIterator[str], send: Send) -> None:
        async for part in parts:
            await send({"type": "http.response.body", "body": part.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


@asynccontextmanager
async def served(app: Any, port: int = 0, **tls: str) -> AsyncIterator[str]:
    """The address of ``app`` on loopback while the context lasts; tls: uvicorn's options of
    https."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    config = uvicorn.Config(
        app, log_level="critical", lifespan="off", timeout_graceful_shutdown=0, **tls
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    running = asyncio.ensure_future(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        server.force_exit = True
        await running
        listener.close()
