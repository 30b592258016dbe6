"""The gate of ghost text: it shows the longest whole unit of a suggestion (lines, a line, an
expression or a name in it) that is likely enough to be right to its end.

The chance is the joint probability of the unit's tokens and of its end, calibrated on code of
repositories that the model was not trained on: ``python -m tests.benchmarks gate`` fits it and
prints how well it holds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from lsp_server.shared.contract.jobs import Span
from lsp_server.tasks.spans import first_spans
from lsp_server.tasks.steps import Steps, heard

THRESHOLDS = {"eager": 0.35, "balanced": 0.55, "quiet": 0.75, "off": 0.0}
"""The least chance of a text that is shown, by the value of ``redraft.completion.gate``. Most are
likelier: of all that is shown with ``balanced`` three of four are right, with ``eager`` more than
half."""
IMPOSSIBLE = -30.0
"""Log probability of an end that cannot be, or of which nothing is known."""
REACH = 0.25
"""A text is written on until it is less likely than this share of what may be shown: the rest of it
comes into sight when its beginning is typed, which is then unlikely."""
LEAST_UNIT = 4
"""Characters; a shorter beginning of a line saves nobody a key."""

_DANGLING = (
    r"and|as|assert|async|await|case|catch|class|const|def|del|elif|else|enum|except|export|extends"
    r"|finally|for|from|func|function|global|if|implements|import|in|instanceof|interface|is|lambda"
    r"|let|new|nonlocal|not|or|raise|return|switch|throw|try|type|typeof|var|while|with|yield"
)
"""Words that need something after them."""
_QUOTES = "\"'`"
_GOES_ON = ".([\"'`"
"""Characters that go on with the expression before them."""


class LikelyPiece(NamedTuple):
    """Characters that one token adds to a text, its log probability, and that of the text's end
    before it (nats)."""

    length: int
    logprob: float
    end: float = IMPOSSIBLE


class BetaCalibration(NamedTuple):
    """The chance of a text to be right to its end: a logistic function of the logarithms of its
    joint probability p, of 1 - p, and of its length (beta calibration, Kull and others 2017)."""

    constant: float
    of_joint: float
    of_rest: float
    of_length: float

    def chance(self, joint: float, length: int) -> float:
        """Return the chance of a text of ``length`` characters, 1 or more. ``joint``: log p, in
        nats."""
        joint = min(joint, -1e-3)
        score = self.constant + self.of_joint * joint + self.of_length * math.log(length)
        return 1 / (1 + math.exp(-score - self.of_rest * math.log(-math.expm1(joint))))


LINES = BetaCalibration(0.12, 0.51, -1.21, -0.27)
"""Of whole rests of lines, and of several lines."""
UNITS = BetaCalibration(1.87, 0.61, -0.75, -0.81)
"""Of units that begin a rest of a line."""


class Unit(NamedTuple):
    """The beginning of a text up to ``end``, and log p of that and of its end."""

    end: int
    joint: float
    calibration: BetaCalibration

    def chance(self, text: str) -> float:
        """Return the chance that ``text`` is right to its end."""
        return self.calibration.chance(self.joint, max(len(text[: self.end].strip()), 1))


def pieces_of(spans: Iterable[Span]) -> list[LikelyPiece] | None:
    """Return the pieces of spans, None where one of them does not say how likely it was, and the
    end before it. A line end in a token after other text is a piece of its own, which is
    certain."""
    pieces = []
    for span in spans:
        if span.logprob is None or span.end_logprob is None:
            return None
        line = max(span.text.find("\n"), 0)
        length = line if span.text[:line].strip() else len(span.text)
        pieces.append(LikelyPiece(length, span.logprob, span.end_logprob))
        if length < len(span.text):
            pieces.append(LikelyPiece(len(span.text) - length, 0.0, 0.0))
    return pieces


def sure_length(pieces: Sequence[LikelyPiece], threshold: float) -> int:
    """Return characters of the longest run from the start whose joint probability is not below
    ``threshold``, above 0."""
    budget, length = math.log(threshold), 0
    for piece in pieces:
        budget -= piece.logprob
        if budget > 0:
            break
        length += piece.length
    return length


@cache
def least_joint(threshold: float) -> float:
    """Return the joint probability below which no text has the chance ``threshold``."""
    if not threshold:
        return 0.0
    least = 1.0
    for calibration, length in ((LINES, 1), (UNITS, LEAST_UNIT)):
        low, high = IMPOSSIBLE, 0.0
        for _ in range(40):
            middle = (low + high) / 2
            if calibration.chance(middle, length) < threshold:
                low = middle
            else:
                high = middle
        least = min(least, math.exp(low))
    return least


def gated(text: str, pieces: Sequence[LikelyPiece], threshold: float) -> str:
    """Return the part of a text that is shown; all of it with a ``threshold`` of 0, or without
    probabilities. ``threshold``: the least chance to be right to the end."""
    if not threshold or not pieces:
        return text
    nothing = next((piece.end for piece in pieces if piece.length), 0.0)
    length = 0
    for unit in lines_of(text, pieces):
        if unit.chance(text) < threshold or unit.joint < nothing:
            break
        length = unit.end
    if not length:
        passing = (
            unit.end
            for unit in units_of(text, pieces)
            if unit.chance(text) >= threshold and unit.joint >= nothing
        )
        length = max(passing, default=0)
    return text[:length].rstrip()


def lines_of(text: str, pieces: Sequence[LikelyPiece]) -> Iterator[Unit]:
    """Return the lines of a text that are not blank, each with those before it. The last one counts
    only if the text is known to end there."""
    end = -1
    for line in text.split("\n"):
        end += len(line) + 1
        if line.strip():
            joint, following = _up_to(pieces, end)
            yield Unit(end, joint + (following.end if following is not None else IMPOSSIBLE), LINES)


def units_of(text: str, pieces: Sequence[LikelyPiece]) -> Iterator[Unit]:
    """Expressions and names that begin the first line of a text."""
    line = text.split("\n", 1)[0]
    for end in unit_ends(line):
        joint, following = _up_to(pieces, end)
        yield Unit(end, joint + (following.logprob if following is not None else 0.0), UNITS)


def unit_ends(line: str) -> list[int]:
    """Yield the offsets at which a person would end before the end of a line: brackets and quotes
    are closed there, a name is whole, and the expression does not continue."""
    ends, depth, quote = [], 0, ""
    for offset in range(1, len(line) + 1):
        before, after = line[offset - 1], line[offset : offset + 1]
        if quote:
            quote = "" if before == quote else quote
        elif before in _QUOTES:
            quote = before
        else:
            depth += (before in "([{") - (before in ")]}")
        is_word = _in_word(before)
        stands = (is_word and not _in_word(after)) or before in ")]}" or before in _QUOTES
        if stands and not quote and depth <= 0 and after and after not in _GOES_ON:
            ends.append(offset)
    if quote:
        # Or the cursor was in a string: the quotes do not pair.
        return []
    units = ((end, line[:end].strip()) for end in ends)
    dangling = re.compile(rf"\b({_DANGLING})$")
    return [end for end, unit in units if len(unit) >= LEAST_UNIT and not dangling.search(unit)]


def _up_to(pieces: Sequence[LikelyPiece], end: int) -> tuple[float, LikelyPiece | None]:
    """Return the log probability of the first ``end`` characters, and the piece after them;
    None if they end inside a piece or with the last one."""
    joint, offset = 0.0, 0
    for piece in pieces:
        if offset >= end:
            return joint, piece if offset == end else None
        joint, offset = joint + piece.logprob, offset + piece.length
    return joint, None


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def aligned(pieces: Sequence[LikelyPiece], text: str, visible: str) -> list[LikelyPiece]:
    """Return the pieces of ``text`` as pieces of ``visible``, which is ``text`` with characters
    left out."""
    kept_pieces, offset, start = [], 0, 0
    for piece in pieces:
        length = 0
        for character in text[start : start + piece.length]:
            if visible[offset + length : offset + length + 1] == character:
                length += 1
        kept_pieces.append(piece._replace(length=length))
        offset, start = offset + length, start + piece.length
    return kept_pieces


def rest_of(pieces: Sequence[LikelyPiece], typed: int) -> list[LikelyPiece]:
    """Return the pieces after the first ``typed`` characters, which are in the document. A
    token typed in part keeps its probability: it is likelier now, but only the model could say by
    how much."""
    rest = []
    for piece in pieces:
        if not typed:
            rest.append(piece)
        elif piece.length > typed:
            rest.append(LikelyPiece(piece.length - typed, piece.logprob))
        typed = max(typed - piece.length, 0)
    return rest


class GateWatch:
    """Reads a suggestion while it is written, and asks for its end where so little of what may be
    shown is left that hardly anybody types on to there."""

    def __init__(self, threshold: float, cancelled: Callable[[], bool]) -> None:
        """threshold: the joint probability below which nothing is shown, above 0. cancelled: True
        once another caller asks to stop."""
        self._threshold, self._cancelled = threshold * REACH, cancelled
        self._pieces: list[LikelyPiece] = []
        self._end: int | None = None

    def cancelled(self) -> bool:
        """Return True if the generation shall end."""
        return self._end is not None or self._cancelled()

    def over(self, steps: Steps) -> Steps:
        """Return the steps; their result ends with the token that is too unlikely."""
        result = yield from heard(steps, self._read)
        is_cut = result.stopped_by == "cancelled" or (self._end or 0) < len(result.text)
        if self._end is not None and is_cut:
            text, spans = result.text[: self._end], first_spans(result.spans, self._end)
            result = replace(result, text=text, spans=spans, stopped_by="unsure")
        return result

    def _read(self, spans: list[Span]) -> None:
        self._pieces += pieces_of(spans) or []
        sure = sure_length(self._pieces, self._threshold)
        ends = accumulate(piece.length for piece in self._pieces)
        self._end = next((end for end in ends if end > sure), None)
