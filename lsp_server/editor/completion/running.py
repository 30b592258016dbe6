"""A completion that is being generated, and those who wait for it."""

from __future__ import annotations

import asyncio

from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.shared.contract.calls import Call
from lsp_server.shared.contract.jobs import JobResult, Span
from lsp_server.tasks.completion.gate import LikelyPiece, pieces_of


class Running:
    """One generation. It goes on while the user types what it writes."""

    def __init__(self, ask: CompletionRequest) -> None:
        self.ask = ask
        self.text = ""
        self.pieces: list[LikelyPiece] = []
        """How likely the model found its tokens; none where that is not told of all."""
        self._tells = True
        self.waiting = 0
        self.finished = False
        self.complete = False
        """The text ended by itself."""
        self.result: JobResult | None = None
        self._call: Call | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self.error: BaseException | None = None
        """Why there is no text."""

    def start(self, call: Call) -> None:
        """Follow ``call``."""
        self._call = call
        call.future.add_done_callback(self._done)

    def add(self, spans: list[Span]) -> None:
        """The model wrote more."""
        self.text += "".join(span.text for span in spans)
        found = pieces_of(spans)
        self._tells = self._tells and found is not None
        self.pieces = [*self.pieces, *(found or ())] if self._tells else []
        self.wake()

    def _done(self, future: asyncio.Future[JobResult | None]) -> None:
        self.finished = True
        if not future.cancelled():
            self.error = future.exception()
            if self.error is None and (result := future.result()) is not None:
                self.result, self.text = result, result.text
                self.complete = result.stopped_by != "cancelled"
        self.wake()

    @property
    def usable(self) -> bool:
        """It still writes, or it wrote to the end."""
        return self.error is None and (self.complete or not self.finished)

    def typed_since(self, ask: CompletionRequest) -> str | None:
        """What was typed since the generation began, if it may still fit what is written."""
        own = self.ask
        if own.document != ask.document or own.suffix != ask.suffix or own.invoked != ask.invoked:
            return None
        if not ask.prefix.startswith(own.prefix):
            return None
        typed = ask.prefix[len(own.prefix) :]
        fits = self.text.startswith(typed) or (not self.finished and typed.startswith(self.text))
        return typed if fits else None

    def wake(self) -> None:
        """Let those who wait look again."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, timeout_s: float) -> None:
        """Wait until more is written, it is finished, or the time is up. (``asyncio.wait_for``
        before Python 3.12 swallows a cancel that comes at the same time.)"""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        timer = loop.call_later(timeout_s, self.wake)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiters.remove(waiter)

    def cancel(self) -> None:
        """Nobody wants it: the decode loop stops within one forward."""
        if not self.finished and self._call is not None:
            self._call.cancel()
