"""The changes between a window and its answer, and how sure the model was of each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from lsp_server.editor.editing.hunks import line_by_line, minimal_hunks
from lsp_server.editor.next_edits.answers import AnsweredWindow
from lsp_server.editor.next_edits.windows import Window
from lsp_server.shared.contract.jobs import Span
from lsp_server.text.documents.document import Document, Position, line_end
from lsp_server.text.text_edit import TextEdit
from repo_index.common_ends import common_ends

_BOM = "\ufeff"
REJOINED_LINES = 2
"""An answer is back in the window when so many whole lines are the window's again."""


def all_hunks(window: Window, answered: AnsweredWindow) -> list[TextEdit[int]]:
    """Return the changes of a whole answer."""
    return _hunks(window.text, answered.text)


def first_hunks(window: Window, answered: AnsweredWindow) -> list[TextEdit[int]]:
    """Return the changes up to where an answer that is still being written rejoined the window;
    none until it did."""
    new = [f"{line}\n" for line in answered.text.split("\n")[:-1]]
    old = [f"{line}\n" for line in window.lines]
    head, _ = common_ends(new, old)
    for end in range(head + REJOINED_LINES, len(new) + 1):
        last = new[end - REJOINED_LINES : end]
        if not any(line.strip() for line in last):
            continue
        for index in range(head, len(old) - REJOINED_LINES + 1):
            if old[index : index + REJOINED_LINES] == last:
                head_text = "".join(old[: index + REJOINED_LINES])
                return _hunks(head_text, "".join(new[:end]))
    return []


def _hunks(old: str, new: str) -> list[TextEdit[int]]:
    """Return the changes between two texts, those of lines that changed one by one apart."""
    return [hunk for change in minimal_hunks(old, new) for hunk in line_by_line(old, change)]


def starts_in_answer(hunks: Sequence[TextEdit[int]]) -> list[int]:
    """Return where the new text of each change is in the answered window."""
    grown = (len(hunk.text) - (hunk.end - hunk.start) for hunk in hunks)
    return [hunk.start + by for hunk, by in zip(hunks, accumulate(grown, initial=0), strict=False)]


def logprob_of(
    start_of_new: int, hunk: TextEdit[int], answered: AnsweredWindow, spans: Sequence[Span]
) -> float:
    """Return the joint log probability (nats) of all tokens from where the answer leaves the window
    to where it is back: of the new text, and of the token that goes on after it, which is all that
    says how likely a deletion was. ``start_of_new``: of its new text, see above."""
    start = answered.answered_at(start_of_new)
    end = answered.answered_at(start_of_new + len(hunk.text))
    if start is None and end is None:
        start = end = 1 << 60
    total, index = 0.0, 0
    for span in spans:
        end_of_span = index + len(span.text)
        first = start if start is not None else end
        last = end if end is not None else 1 << 60
        assert first is not None
        if span.logprob is not None and end_of_span > first and index <= last:
            total += span.logprob
        index = end_of_span
    return total


def in_document(
    window: Window, hunk: TextEdit[int], document: Document, first: int
) -> TextEdit[Position]:
    """Return a change of the window as one of the document, where the window begins in line
    ``first``. Line ends, byte order mark and everything else outside of the hunk stay as they
    are."""
    text = window.text
    start_at, end_at, new = hunk.start, hunk.end, hunk.text
    if window.ends_open and end_at == len(text):
        # The document ends without a line end, and goes on to do so.
        if new.endswith("\n"):
            new, end_at = new[:-1], end_at - 1
            if start_at > end_at:
                start_at, new = end_at, f"\n{new}"
        else:
            end_at -= 1
            if start_at > end_at:
                start_at = end_at
            elif start_at and text[start_at - 1] == "\n":
                start_at -= 1
    start = _position(window, start_at, document, first)
    end = _position(window, end_at, document, first)
    mark = _line_end(document, start.line)
    return TextEdit(start, end, new.replace("\n", mark))


def _position(window: Window, index: int, document: Document, first: int) -> Position:
    line = window.text.count("\n", 0, index)
    column = index - (window.text.rfind("\n", 0, index) + 1)
    if line == len(window.lines) and first + line >= len(document.lines):
        last = document.lines[-1]
        return Position(len(document.lines) - 1, len(last.rstrip("\r\n")))
    if first + line == 0 and document.lines[0].startswith(_BOM):
        column += 1
    return Position(first + line, column)


def _line_end(document: Document, line: int) -> str:
    """Return the line end of a line, or of the one above it."""
    lines = (*document.lines[max(line - 1, 0) : line + 1][::-1], *document.lines[:1])
    return next(filter(None, map(line_end, lines)), "\n")
