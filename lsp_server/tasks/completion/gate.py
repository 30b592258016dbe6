"""How much of a suggestion is shown: the longest run whose joint probability stays above a
threshold, up to the end of a line, or of a word in the first line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from lsp_server.shared.contract.jobs import Span
from lsp_server.tasks.spans import first_spans
from lsp_server.tasks.steps import Steps, heard

THRESHOLDS = {"eager": 0.1, "balanced": 0.2, "quiet": 0.5, "off": 0.0}
"""Joint probabilities by the value of ``redraft.completion.gate``, as the laboratory's ``gate``
chose them: with ``balanced`` who takes words as far as they are right saves hardly less than
without a gate, and who takes whole suggestions far more."""

_OPENS = (":", "{", "(", "[", "=>", "->", "=", ",", "\\")
_DANGLES = "+-*/%=<>!&|^~,.?: \t\\"
"""Characters that want something behind them: a line that is cut does not end with them."""


class LikelyPiece(NamedTuple):
    """Characters that one token adds to a text, and its log probability (nats)."""

    length: int
    logprob: float


def pieces_of(spans: Iterable[Span]) -> list[LikelyPiece] | None:
    """The pieces of spans, None where one of them does not say how likely it was."""
    pieces = []
    for span in spans:
        if span.logprob is None:
            return None
        pieces.append(LikelyPiece(len(span.text), span.logprob))
    return pieces


def sure_length(pieces: Sequence[LikelyPiece], threshold: float) -> int:
    """Characters of the longest run from the start whose joint probability is not below
    ``threshold``, above 0."""
    left, length = math.log(threshold), 0
    for piece in pieces:
        left -= piece.logprob
        if left > 0:
            break
        length += piece.length
    return length


def gated(text: str, pieces: Sequence[LikelyPiece], threshold: float) -> str:
    """What is shown of a text; all of it with a threshold of 0, and where nothing is known of its
    probabilities."""
    if not threshold or not pieces:
        return text
    sure = sure_length(pieces, threshold)
    return text if sure >= len(text) else text[: standing_end(text, sure)]


def standing_end(text: str, sure: int) -> int:
    """The last place up to ``sure`` where what is before it stands by itself: behind whole lines
    that open no block, else behind the first line, else behind its last whole word."""
    first = len(text) - len(text.lstrip())
    ends = [place for place in range(first, min(sure + 1, len(text))) if text[place] == "\n"]
    for end in reversed(ends):
        lines = text[:end].rstrip()
        if not lines.endswith(_OPENS):
            return len(lines)
    return len(text[: ends[0]].rstrip()) if ends else _word_end(text, sure)


def _word_end(text: str, sure: int) -> int:
    """The end of the last whole word up to ``sure``, and of what closes behind it."""
    end = sure
    while 0 < end < len(text) and _in_word(text[end - 1]) and _in_word(text[end]):
        end -= 1
    return len(text[:end].rstrip(_DANGLES)) if text[:end].strip() else 0


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def aligned(pieces: Sequence[LikelyPiece], text: str, shown: str) -> list[LikelyPiece]:
    """The pieces of ``text`` as pieces of ``shown``, which is ``text`` with characters left out."""
    found, place, start = [], 0, 0
    for piece in pieces:
        length = 0
        for character in text[start : start + piece.length]:
            if shown[place + length : place + length + 1] == character:
                length += 1
        found.append(LikelyPiece(length, piece.logprob))
        place, start = place + length, start + piece.length
    return found


def rest_of(pieces: Sequence[LikelyPiece], typed: int) -> list[LikelyPiece]:
    """What is left of pieces once so many characters of them stand in the document. Of a token
    that was typed in part the probability stays: it is likelier now, and how much the model alone
    can say."""
    rest = []
    for piece in pieces:
        if not typed or piece.length > typed:
            rest.append(LikelyPiece(piece.length - typed, piece.logprob))
        typed = max(typed - piece.length, 0)
    return rest


def watched_end(text: str, pieces: Sequence[LikelyPiece], threshold: float) -> int | None:
    """The end of the line in which a text is no longer sure; None while it is, or goes on there."""
    sure = sure_length(pieces, threshold)
    if sure >= len(text):
        return None
    end = text.find("\n", max(sure, len(text) - len(text.lstrip())))
    return end if end >= 0 else None


def is_inside(pieces: Sequence[LikelyPiece], typed: int) -> bool:
    """Whether so many characters end inside a piece."""
    for piece in pieces:
        if typed < piece.length:
            break
        typed -= piece.length
    return typed > 0 and bool(pieces)


class GateWatch:
    """Reads a suggestion while it is written, and asks for its end at the end of the line in which
    the model stops being sure: of what would come behind nothing is shown."""

    def __init__(self, threshold: float, cancelled: Callable[[], bool]) -> None:
        """threshold: a joint probability, above 0. cancelled: whether somebody else asks for the
        end."""
        self._threshold, self._cancelled = threshold, cancelled
        self._text = ""
        self._pieces: list[LikelyPiece] = []
        self._end: int | None = None

    def cancelled(self) -> bool:
        """Whether the generation shall end."""
        return self._end is not None or self._cancelled()

    def over(self, steps: Steps) -> Steps:
        """The steps; their result ends with the line."""
        result = yield from heard(steps, self._read)
        if self._end is not None and self._end < len(result.text):
            text, spans = result.text[: self._end], first_spans(result.spans, self._end)
            result = replace(result, text=text, spans=spans, stopped_by="stop")
        return result

    def _read(self, spans: list[Span]) -> None:
        self._text += "".join(span.text for span in spans)
        self._pieces += pieces_of(spans) or []
        self._end = watched_end(self._text, self._pieces, self._threshold)
