"""A request for a completion, without LSP: texts and options."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from lsp_server.shared.contract.calls import Call
from lsp_server.shared.contract.jobs import JobResult, Span
from lsp_server.tasks.completion.confidence_gate import LikelyPiece, pieces_of

PREFIX_CHARACTERS = 24_000
SUFFIX_CHARACTERS = 8_000
STEP = 8_000
"""The window's start moves in such steps, so that the prompt's start stays while one types."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One place in one document."""

    document: str
    """URI, the key under which suggestions are remembered."""
    path: str
    """Path to tell the model, relative to the workspace where there is one."""
    workspace: str
    language: str
    prefix: str
    suffix: str
    secret: bool = False
    """Something of it may be a secret that the user allows: nothing of it is written anywhere."""
    invoked: bool = False
    """Asked for by hand: several suggestions are expected, and waiting is no harm."""
    threshold: float = 0.0
    """The least chance to be right that text is shown with; 0 for all of it, as by hand."""

    @property
    def line_before(self) -> str:
        """The cursor's line up to the cursor."""
        return self.prefix[self.prefix.rfind("\n") + 1 :]

    @property
    def line_after(self) -> str:
        """The cursor's line from the cursor on."""
        return self.suffix.split("\n", 1)[0]

    @property
    def windowed_prefix(self) -> str:
        """The end of a long prefix, from a line start that moves in large steps only."""
        prefix = self.prefix
        if len(prefix) <= PREFIX_CHARACTERS:
            return prefix
        start = (len(prefix) - PREFIX_CHARACTERS + STEP - 1) // STEP * STEP
        line = prefix.find("\n", start) + 1
        return prefix[line:] if line else prefix[start:]

    @property
    def windowed_suffix(self) -> str:
        """The beginning of a long suffix, to a line end."""
        suffix = self.suffix
        if len(suffix) <= SUFFIX_CHARACTERS:
            return suffix
        end = suffix.rfind("\n", 0, SUFFIX_CHARACTERS)
        return suffix[: end + 1] if end > 0 else suffix[:SUFFIX_CHARACTERS]

    @property
    def wants_several_lines(self) -> bool:
        """True if a block may be written here: on an empty line, or after a block's header."""
        if self.line_after.strip(" \t\r)]}>;,:\"'"):
            return False
        before = self.line_before.rstrip()
        return not before.strip() or before.endswith((":", "{", "(", "[", "=>", "->"))


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
