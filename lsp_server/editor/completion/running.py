"""A completion that is being generated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.shared.contract.calls import Call
from lsp_server.shared.contract.jobs import JobResult, Span
from lsp_server.tasks.completion.confidence_gate import LikelyPiece, pieces_of


class Running:
    """One generation. It goes on while the user types what it writes."""

    def __init__(self, ask: CompletionRequest, gate: float, on_more: Callable[[], None]) -> None:
        """``gate``: the joint probability below which nothing of it will be shown, 0 for none.
        ``on_more``: told when there is more text, and when it ends."""
        self.ask = ask
        self.gate = gate
        self.text = ""
        self.pieces: list[LikelyPiece] = []
        """How likely the model found its tokens; none where that is not told of all."""
        self.finished = False
        self.complete = False
        """The text was written to an end."""
        self.is_cut = False
        """What would come after it was too unlikely to be written."""
        self.result: JobResult | None = None
        self.error: BaseException | None = None
        """Why there is no text."""
        self._tells = True
        self._on_more = on_more
        self._call: Call | None = None

    def start(self, call: Call) -> None:
        """Follow ``call``."""
        self._call = call
        call.future.add_done_callback(self._done)

    def add(self, spans: list[Span]) -> None:
        """The model wrote more."""
        self.text += "".join(span.text for span in spans)
        pieces = pieces_of(spans)
        self._tells = self._tells and pieces is not None
        self.pieces = [*self.pieces, *(pieces or ())] if self._tells else []
        self._on_more()

    def _done(self, future: asyncio.Future[JobResult | None]) -> None:
        self.finished = True
        if not future.cancelled():
            self.error = future.exception()
            if self.error is None and (result := future.result()) is not None:
                self.result, self.text = result, result.text
                self.complete = result.stopped_by != "cancelled"
                self.is_cut = result.stopped_by == "unsure"
        self._on_more()

    def typed_since(self, ask: CompletionRequest) -> str | None:
        """Return the text typed since the generation began, if it may still fit the written text;
        None if it does not, or if the text broke off."""
        own = self.ask
        if own.document != ask.document or own.suffix != ask.suffix or own.invoked != ask.invoked:
            return None
        if (self.finished and not self.complete) or not ask.prefix.startswith(own.prefix):
            return None
        typed = ask.prefix[len(own.prefix) :]
        fits = self.text.startswith(typed) or (not self.finished and typed.startswith(self.text))
        return typed if fits else None

    def cancel(self) -> None:
        """Stop the generation within one forward: no request waits for it any more."""
        if not self.finished and self._call is not None:
            self._call.cancel()
