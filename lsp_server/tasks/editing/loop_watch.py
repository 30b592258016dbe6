"""Stops answers that repeat themselves. They are never used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lsp_server.shared.contract.jobs import Span
from lsp_server.tasks.steps import Steps, heard

CHARACTERS = 1600
REPEATS = 8
"""A text loops that ends in so many characters, made of at least so many equal pieces."""
_END = 60


def is_loop(text: str, given_text: str) -> bool:
    """Return True if a text ends in many repeats of one piece, and ``given_text`` has none such."""
    tail = text[-CHARACTERS:]
    if len(tail) < CHARACTERS:
        return False
    before = tail.rfind(tail[-_END:], 0, CHARACTERS - 1)
    period = CHARACTERS - _END - before
    if before < 0 or period * REPEATS > CHARACTERS:
        return False
    return tail[period:] == tail[:-period] and tail not in given_text


class LoopWatch:
    """Reads an answer while it is written, and asks for its end when it loops."""

    def __init__(self, given_text: str, cancelled: Callable[[], bool]) -> None:
        """given_text: text that the answer may repeat. cancelled: True once another caller asks to
        stop."""
        self._known = given_text
        self._cancelled = cancelled
        self._text = ""
        self.spans: list[Span] = []
        """All that were heard."""
        self._read = 0
        self._loops = False

    def cancelled(self) -> bool:
        """Return True if the generation shall end."""
        return self._loops or self._cancelled()

    def over(self, steps: Steps) -> Steps:
        """Return the steps; their result says where the answer looped."""
        result = yield from heard(steps, self._hear)
        if self._loops and result.stopped_by == "cancelled":
            result = replace(result, stopped_by="loop")
        return result

    def _hear(self, spans: list[Span]) -> None:
        self.spans += spans
        self._text += "".join(span.text for span in spans)
        if len(self._text) - self._read >= _END:
            self._read = len(self._text)
            self._loops = is_loop(self._text, self._known)
