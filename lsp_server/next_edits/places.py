"""Finds places of a document that an edit touches by name, for the next window."""

from __future__ import annotations

import keyword
import re

from lsp_server.documents.document import Document, Position
from lsp_server.next_edits.history import RecordedEdit
from lsp_server.next_edits.windows import Window

MOST_PLACES = 2
_NAME = re.compile(r"[^\W\d]\w{2,}")


def places_touched(edit: RecordedEdit | None, document: Document, window: Window) -> list[Position]:
    """Lines outside of a window that hold a name which the edit took away, else one that stands in
    its changed lines; the nearest first, and none within a window's reach of another."""
    if edit is None:
        return []
    old, new = _names(edit.old_text), _names(edit.new_text)
    first, end = window.first, window.first + len(window.lines)
    reach = max(len(window.lines) // 2, 1)
    found: list[Position] = []
    for names in (old - new, (old & new) | (new - old)):
        if not names:
            continue
        pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
        lines = [
            (min(abs(at - first), abs(at - end)), at, match.start())
            for at, line in enumerate(document.lines)
            if not first <= at < end and (match := pattern.search(line))
        ]
        for _, at, column in sorted(lines):
            if all(abs(at - other.line) > reach for other in found):
                found.append(Position(at, column))
            if len(found) == MOST_PLACES:
                return found
    return found


def _names(text: str) -> set[str]:
    return {name for name in _NAME.findall(text) if not keyword.iskeyword(name)}
