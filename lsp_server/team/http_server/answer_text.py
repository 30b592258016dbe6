"""Streams the text of an answer; text that a stop text might still cut waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lsp_server.shared.contract.jobs import GenerateJob, JobResult, Span
from lsp_server.team.http_server.tool_calls import BEGIN, ToolCall, calls_in


@dataclass(slots=True)
class AnswerPiece:
    """Text that may be told now, and the tokens that spell it where those were asked for."""

    text: str = ""
    tokens: list[Span] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    """Functions that are to be called, once the answer has ended."""

    def __bool__(self) -> bool:
        return bool(self.text or self.tokens or self.calls)


class AnswerText:
    """Takes spans as they are generated and gives them on when they are certain."""

    def __init__(self, job: GenerateJob) -> None:
        self._tools = job.tools
        # The text of a call is not told, so it ends the text that is certain as a stop text does.
        self._stops = [*job.stop, *([BEGIN] if job.tools else [])]
        self._whole_lines = job.max_seconds > 0 or job.min_indent > 0
        self._text = ""
        self._sent = 0
        self._waiting: list[tuple[int, Span]] = []
        """Tokens that were not told, with where their text ends."""

    def add(self, spans: Sequence[Span]) -> AnswerPiece:
        """Return the text that is certain, now that ``spans`` have come."""
        for span in spans:
            self._text += span.text
            if span.token_logprob is not None:
                self._waiting.append((len(self._text), span))
        return self._tell(self._certain())

    def end(self, result: JobResult) -> AnswerPiece:
        """Return the rest of the whole answer."""
        self._text, calls = calls_in(result.text, self._tools) if self._tools else (result.text, [])
        if result.stopped_by != "stop":
            self._waiting = [(min(end, len(self._text)), span) for end, span in self._waiting]
        piece = self._tell(len(self._text))
        piece.calls = calls
        return piece

    def _tell(self, end: int) -> AnswerPiece:
        end = max(end, self._sent)
        piece = AnswerPiece(
            self._text[self._sent : end], [span for offset, span in self._waiting if offset <= end]
        )
        self._waiting = [(offset, span) for offset, span in self._waiting if offset > end]
        self._sent = end
        return piece

    def _certain(self) -> int:
        """Return the length of the text that no stop can cut any more."""
        text, most = self._text, len(self._text)
        if self._whole_lines:
            most = max(text.rfind("\n"), 0)
        for stop in self._stops:
            start = text.find(stop, max(self._sent - len(stop), 0))
            certain = len(text) - _overlap(text, stop) if start < 0 else start
            most = min(most, certain)
        # Blanks before a call go with it.
        return len(text[:most].rstrip()) if self._tools else most


def _overlap(text: str, stop: str) -> int:
    longest = min(len(stop) - 1, len(text))
    return next((count for count in range(longest, 0, -1) if text.endswith(stop[:count])), 0)
