"""Continues a text that was partly shown with the text of another source."""

from __future__ import annotations

from lsp_server.shared.contract.calls import OnSpans
from lsp_server.shared.contract.jobs import Span


class ResumedSpans:
    """Passes spans on. Where a job begins again, what was passed on already is left out; nothing
    more is passed on when the new text is another one, and the result says what it is."""

    def __init__(self, on_spans: OnSpans | None) -> None:
        self._on_spans = on_spans
        self._sent = ""
        self._text = ""

    def begin_again(self) -> None:
        """The job is done anew from its start."""
        self._text = ""

    def add(self, spans: list[Span]) -> None:
        """More of the text came."""
        if self._on_spans is None:
            return
        self._text += "".join(span.text for span in spans)
        if len(self._text) <= len(self._sent) or not self._text.startswith(self._sent):
            return
        fresh = self._text[len(self._sent) :]
        self._on_spans(_last(spans, len(fresh)))
        self._sent = self._text


def _last(spans: list[Span], length: int) -> list[Span]:
    """Return the spans of the last ``length`` characters."""
    last: list[Span] = []
    for span in reversed(spans):
        text = span.text[-length:] if length else ""
        if text == span.text:
            last.insert(0, span)
        elif text:
            last.insert(0, Span(text, span.source))
        length -= len(text)
    return last
