"""Streams the text of an answer; text that a stop text might still cut waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lsp_server.shared.contract.jobs import JobResult, Span


@dataclass(slots=True)
class AnswerPiece:
    """Text that may be told now, and the tokens that spell it where those were asked for."""

    text: str = ""
    tokens: list[Span] = field(default_factory=list)


class AnswerText:
    """Takes spans as they are generated and gives them on when they are certain."""

    def __init__(self, stops: Sequence[str], whole_lines: bool = False) -> None:
        """``stops``: texts before which the answer ends; ``whole_lines``: it may end before any
        line end."""
        self._stops = stops
        self._whole_lines = whole_lines
        self._text = ""
        self._sent = 0
        self._waiting: list[tuple[int, Span]] = []
        """Tokens that were not told, with where their text ends."""

    def add(self, spans: Sequence[Span]) -> AnswerPiece:
        """What may be told now that these have come."""
        for span in spans:
            self._text += span.text
            if span.token_logprob is not None:
                self._waiting.append((len(self._text), span))
        return self._tell(self._certain())

    def end(self, result: JobResult) -> AnswerPiece:
        """What is left to be told of the whole answer."""
        self._text = result.text
        if result.stopped_by != "stop":
            self._waiting = [(min(end, len(self._text)), span) for end, span in self._waiting]
        return self._tell(len(self._text))

    def _tell(self, end: int) -> AnswerPiece:
        end = max(end, self._sent)
        piece = AnswerPiece(
            self._text[self._sent : end], [span for at, span in self._waiting if at <= end]
        )
        self._waiting = [(at, span) for at, span in self._waiting if at > end]
        self._sent = end
        return piece

    def _certain(self) -> int:
        """How much of the text no stop can cut any more."""
        text, most = self._text, len(self._text)
        if self._whole_lines:
            most = max(text.rfind("\n"), 0)
        for stop in self._stops:
            found = text.find(stop, max(self._sent - len(stop), 0))
            certain = len(text) - _overlap(text, stop) if found < 0 else found
            most = min(most, certain)
        return most


def _overlap(text: str, stop: str) -> int:
    longest = min(len(stop) - 1, len(text))
    return next((count for count in range(longest, 0, -1) if text.endswith(stop[:count])), 0)
