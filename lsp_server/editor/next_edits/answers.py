"""Reads a model's answer about a window."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lsp_server.editor.next_edits.prompts import block_borders, prefill
from lsp_server.editor.next_edits.windows import Window
from lsp_server.tasks.next_edits.formats import NextEditFormat

LEAST_ALIKE = 0.4
"""Share of a window's lines that occur in an answer; with fewer it is none of the window."""
FEW_LINES = 4
"""Of so few lines all may change."""
_LONGEST_LEAD = 80
"""Characters before the window in an answer that has tags or markers."""


class AnswerPart(NamedTuple):
    """A stretch of the window's new text that is in the answer."""

    start: int
    """In the new text."""
    answered: int
    """In the answer."""
    length: int


@dataclass(frozen=True, slots=True)
class AnsweredWindow:
    """The window as it becomes, and which parts of it are the answer's, in order."""

    text: str
    taken: tuple[AnswerPart, ...] = ()

    def answered_at(self, index: int) -> int | None:
        """Return where in the answer a character of the text is; None where it is none of its."""
        for piece in self.taken:
            if piece.start <= index < piece.start + piece.length:
                return piece.answered + index - piece.start
        return None


class NoWindow(Exception):
    """An answer that is no window: the model was asked in another format than its own."""


class TakenBack(NoWindow):
    """An answer that has more of the window as it was before the last edit."""


def read_answer(
    answer: str, window: Window, fmt: NextEditFormat, *, is_whole: bool
) -> AnsweredWindow:
    """Return the window of an answer, or as much of it as was written so far. Raises NoWindow, of a
    whole one TakenBack."""
    if fmt.answer == "markers":
        answered = _between_markers(answer, window, fmt, is_whole=is_whole)
    else:
        answered = _one_text(answer, window, fmt, is_whole=is_whole)
    if is_whole:
        _check(answered.text, window)
    return answered


def _one_text(
    answer: str, window: Window, fmt: NextEditFormat, *, is_whole: bool
) -> AnsweredWindow:
    start = 0
    if fmt.answer == "tagged":
        start_tag = answer.find(fmt.opens)
        if start_tag < 0:
            if is_whole or len(answer) > _LONGEST_LEAD:
                raise NoWindow("the answer lacks the tag before the window")
            return AnsweredWindow("")
        start = start_tag + len(fmt.opens)
        start += answer.startswith("\n", start)
    end = answer.find(fmt.closes, start) if fmt.closes else -1
    end = end if end >= 0 else len(answer)
    if fmt.nothing and answer[start:end].strip() == fmt.nothing:
        return AnsweredWindow(window.text)
    ahead = prefill(window, fmt)
    marks = [re.escape(fmt.cursor)] if fmt.cursor else []
    answered = _without_marks(answer, start, end, ahead, marks)
    if is_whole and answered.text and not answered.text.endswith("\n"):
        return AnsweredWindow(f"{answered.text}\n", answered.taken)
    return answered


def _without_marks(
    answer: str, start: int, end: int, ahead: str, marks: Iterable[str]
) -> AnsweredWindow:
    """Return text ``ahead``, and after it that of the answer without marks; these are patterns."""
    text, pieces = ahead, []
    joined = re.compile("|".join(marks) or "(?!)")
    gaps = [(start, start), *(mark.span() for mark in joined.finditer(answer, start, end))]
    for (_, first), (last, _) in zip(gaps, [*gaps[1:], (end, end)], strict=True):
        pieces.append(AnswerPart(len(text), first, last - first))
        text += answer[first:last]
    return AnsweredWindow(text, tuple(pieces))


def _between_markers(
    answer: str, window: Window, fmt: NextEditFormat, *, is_whole: bool
) -> AnsweredWindow:
    borders = [*block_borders(window.lines), len(window.lines)]
    pattern = re.escape(fmt.marker.format(number="0")).replace("0", r"(\d+)")
    marks = list(re.finditer(pattern, answer))
    if not marks:
        if is_whole or len(answer) > _LONGEST_LEAD:
            raise NoWindow("the answer has no marker")
        return AnsweredWindow("")
    first, last = int(marks[0][1]), int(marks[-1][1])
    if not 1 <= first <= last <= len(borders):
        raise NoWindow("the answer has markers that the window has not")
    if is_whole and last == first:
        return AnsweredWindow(window.text)
    head = "".join(f"{line}\n" for line in window.lines[: borders[first - 1]])
    end = marks[-1].start() if is_whole else len(answer)
    answered = _without_marks(answer, marks[0].end(), end, head, [pattern, re.escape(fmt.cursor)])
    tail = "".join(f"{line}\n" for line in window.lines[borders[last - 1] :]) if is_whole else ""
    return AnsweredWindow(answered.text + tail, answered.taken)


def _check(text: str, window: Window) -> None:
    """Raise NoWindow for a text that has little of the window."""
    if _is_alike(text, window.lines):
        return
    if window.original != window.lines and _is_alike(text, window.original):
        raise TakenBack("it takes back an edit")
    raise NoWindow("the answer has little of the window")


def _is_alike(text: str, lines: Sequence[str]) -> bool:
    old = [line for line in lines if line.strip()]
    if len(old) <= FEW_LINES:
        return True
    matcher = difflib.SequenceMatcher(None, old, text.split("\n"), autojunk=False)
    alike = sum(block.size for block in matcher.get_matching_blocks())
    return alike >= LEAST_ALIKE * len(old)
