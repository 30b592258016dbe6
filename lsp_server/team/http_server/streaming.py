"""Streams answers while the engine works. A client that leaves cancels its requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import Receive, Scope, Send

from lsp_server.shared.contract.calls import Call, OnSpans
from lsp_server.shared.contract.codec import to_json
from lsp_server.shared.contract.jobs import Span
from lsp_server.team.http_server.errors import ClientLeft, NoAnswer, RequestRefused, refusal_of
from lsp_server.team.http_server.metrics import note_result

HEARD_AFTER_S = 1.0
"""Clients and proxies give up a connection that is silent for long: a comment comes meanwhile. What
is refused sooner is so with its own status."""
EVENT_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
}

Begin = Callable[[OnSpans], Call]
"""Starts a request to the engine."""


class Events:
    """The form in which the progress and the end of a request are written. This is the editor's."""

    comment = b": the prompt is being computed\n\n"
    """What clients pass over."""
    fails_by_status = False
    """A request that fails before anything came is answered with an HTTP status."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        """Further headers of the response, or other values."""

    def close(self, results: Sequence[Any]) -> bytes:
        """Return the end of a stream, after the last request; ``results`` are in the order in which
        they were asked."""
        return b""

    def spans(self, index: int, spans: list[Span]) -> bytes:
        """New text of the request of this number; nothing for nothing."""
        return event("spans", to_json(spans)) if spans else b""

    def result(self, index: int, result: Any) -> bytes:
        """Return its end."""
        return event("result", to_json(result))

    def error(self, refused: RequestRefused) -> bytes:
        """Return the end of a request that failed."""
        return event("error", {"kind": refused.code, "message": refused.message})


class StreamedCalls:
    """An ASGI response: server-sent events of requests to the engine, as they come."""

    def __init__(self, begins: Sequence[Begin], events: Events) -> None:
        self._begins = begins
        self._events = events
        self._started = False
        self._news: asyncio.Queue[tuple[int, list[Span] | None]] = asyncio.Queue()
        """Spans with the number of their request; None where that has ended."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the engine has answered or the client has left."""
        calls = [self._begun(index, begin) for index, begin in enumerate(self._begins)]
        results: dict[int, Any] = {}
        async with cancelled_by_leaving(calls, receive) as leaving:
            while len(results) < len(calls):
                try:
                    index, spans = await asyncio.wait_for(self._news.get(), HEARD_AFTER_S)
                except asyncio.TimeoutError:
                    await self._send(send, self._events.comment, is_last=False)
                    continue
                if leaving.done():
                    await NoAnswer()(scope, receive, send)
                    return
                if spans is not None:
                    data = self._events.spans(index, spans)
                else:
                    try:
                        results[index] = calls[index].future.result()
                    except Exception as error:
                        await self._fail(error, send)
                        return
                    note_result(scope, results[index])
                    data = self._events.result(index, results[index])
                is_last = len(results) == len(calls)
                if is_last:
                    data += self._events.close([results[each] for each in range(len(calls))])
                if data:
                    await self._send(send, data, is_last=is_last)

    def _begun(self, index: int, begin: Begin) -> Call:
        call = begin(lambda spans: self._news.put_nowait((index, spans)))
        call.future.add_done_callback(lambda _: self._news.put_nowait((index, None)))
        return call

    async def _fail(self, error: Exception, send: Send) -> None:
        """End with what is wrong. Raises RequestRefused where nothing was sent yet."""
        refused = refusal_of(error)
        if not self._started and self._events.fails_by_status:
            raise refused from error
        await self._send(send, self._events.error(refused), is_last=True)

    async def _send(self, send: Send, data: bytes, *, is_last: bool) -> None:
        if not self._started:
            # With the first news: on Ray every message by itself costs as much as a forward.
            self._started = True
            named = {**EVENT_HEADERS, **self._events.headers}
            head = [(name.encode(), value.encode()) for name, value in named.items()]
            await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": data, "more_body": not is_last})


async def answered(calls: Sequence[Call], receive: Receive) -> list[Any]:
    """Return the engine's answers, in one piece each. Raises RequestRefused or ClientLeft."""
    async with cancelled_by_leaving(calls, receive) as leaving:
        try:
            results = [await call.future for call in calls]
        except Exception as error:
            if leaving.done():
                raise ClientLeft from error
            raise refusal_of(error) from error
        if leaving.done():
            raise ClientLeft
        return results


@asynccontextmanager
async def cancelled_by_leaving(
    calls: Sequence[Call], receive: Receive
) -> AsyncIterator[asyncio.Future[None]]:
    """Stop the calls when the client closes the connection, or when their answer is given up. The
    future is done once the client has left."""

    def cancel() -> None:
        for call in calls:
            if not call.future.done():
                call.cancel()

    leaving = asyncio.ensure_future(_left(receive))
    leaving.add_done_callback(lambda task: None if task.cancelled() else cancel())
    try:
        yield leaving
    finally:
        leaving.cancel()
        cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def event(name: str, data: Any) -> bytes:
    """Return a server-sent event. Lone surrogates travel as escapes."""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode("ascii")
