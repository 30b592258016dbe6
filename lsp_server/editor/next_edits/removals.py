"""Lines that an answer takes away of a window, and rules for them: small models skip lines."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.editor.next_edits.windows import Window
from lsp_server.text.documents.document import Document
from lsp_server.text.syntax.outline import is_heading
from lsp_server.text.text_edit import TextEdit

MOST_REMOVED = 3
"""Lines that the user did not touch and that an answer may take away."""
LAST_EDITS = 5
"""A deletion is named in one of so many."""
_IMPORT = re.compile(
    r"(?:import\b|from\s+\S+\s+import\b|#\s*include\b|use\s+[\w:]+|using\s+[\w.]+\s*;|require\b)"
    r"|.*=\s*require\s*\("
)
_WORD = re.compile(r"\w+")
_BLOCK = re.compile(
    r"(?!(?:if|for|while|switch|else|try|catch|do|return|with|using|lock|match|unless|until)\b)"
    r"(?:[^=;(]*\w\s*\(.*\)[^;=()]*\{|(?:export\s+)?(?:const|let|var)\s+\w+\s*=.*=>.*)$"
)
"""The first line of a method, or a function that a name is given to, in languages with braces."""


@dataclass(frozen=True, slots=True)
class Removal:
    """The untouched lines that a change of a window takes away, and what it adds, stripped."""

    hunk: TextEdit[int]
    gone: Counter[str]
    came: Counter[str]
    text: str
    """What the change deletes where it adds nothing; else empty."""

    @classmethod
    def of(
        cls, window: Window, hunk: TextEdit[int], recent: Sequence[RecordedEdit], document: Document
    ) -> Removal:
        """Of one change. recent: edits of all documents; document: that of the window."""
        text = window.text
        start = text.rfind("\n", 0, hunk.start) + 1
        # Up to the end of the line in which the change ends, unless it ends with a line.
        is_whole = hunk.start == start and text[: hunk.end].endswith("\n")
        end = hunk.end if is_whole else text.find("\n", hunk.end) + 1
        own = (edit for edit in recent if edit.document is document)
        touched = {line - window.first for edit in own for line in range(edit.line, edit.end)}
        first = text.count("\n", 0, start)
        lines = enumerate(text[start:end].split("\n"), first)
        old = [line for number, line in lines if number not in touched]
        new = text[start : hunk.start] + hunk.text + text[hunk.end : end]
        before, after = _counted(old), _counted(new.split("\n"))
        deleted = "" if hunk.text.strip() else text[hunk.start : hunk.end]
        return cls(hunk, before - after, after - before, deleted)


def refused_removals(
    window: Window,
    hunks: Iterable[TextEdit[int]],
    recent: Sequence[RecordedEdit],
    document: Document,
) -> list[tuple[TextEdit[int], str]]:
    """Return the changes that take away definitions, imports, too many untouched lines or what no
    edit names, and why. recent: the edits of all documents, the latest first."""
    remaining = [Removal.of(window, hunk, recent, document) for hunk in hunks]
    refused: list[tuple[TextEdit[int], str]] = []
    while first := _first_refused(remaining, recent):
        # What it would have added does not come, either.
        remaining.remove(first[0])
        refused.append((first[0].hunk, first[1]))
    return refused


def _first_refused(
    removals: Sequence[Removal], recent: Sequence[RecordedEdit]
) -> tuple[Removal, str] | None:
    came = sum((removal.came for removal in removals), Counter[str]())
    for edit in recent:
        came += _counted(edit.new) - _counted(edit.old)
    is_typed = not recent or recent[0].origin == "typed"
    names = _taken_away(recent[:LAST_EDITS])
    total = 0
    for removal in removals:
        gone = removal.gone - came
        fewer = max(gone.total() - removal.came.total(), 0)
        total += fewer
        reason = ""
        if fewer and not is_typed:
            reason = "it deletes lines after an edit that was not typed"
        elif _count(gone, _is_definition) > _count(removal.came, _is_definition):
            reason = "it deletes a definition"
        elif _count(gone, _IMPORT.match) > _count(removal.came, _IMPORT.match):
            reason = "it deletes an import"
        elif total > MOST_REMOVED:
            reason = f"it deletes more than {MOST_REMOVED} lines"
        elif removal.text.strip() and gone and not _is_named(removal, gone, names):
            reason = "it deletes what no edit has to do with"
        if reason:
            return removal, reason
    return None


def _is_named(removal: Removal, gone: Counter[str], names: set[str]) -> bool:
    """Return whether each line that goes, or its text, has a word that an edit took away."""
    lines = list(gone) if "\n" in removal.text else [removal.text]
    # A brace, a comma or the underscore of a name has none.
    return all(not (words := {*_WORD.findall(line)} - {"_"}) or names & words for line in lines)


def _taken_away(edits: Iterable[RecordedEdit]) -> set[str]:
    """Return the names that edits took away."""
    words = ((_WORD.findall(edit.old_text), _WORD.findall(edit.new_text)) for edit in edits)
    gone = {word for old, new in words for word in Counter(old) - Counter(new)}
    return {word for word in gone if len(word) > 1 and not keyword.iskeyword(word)}


def _is_definition(line: str) -> bool:
    return is_heading(line) or _BLOCK.match(line) is not None


def _count(lines: Counter[str], is_so: Callable[[str], object]) -> int:
    return sum(number for line, number in lines.items() if is_so(line))


def _counted(lines: Iterable[str]) -> Counter[str]:
    return Counter(stripped for line in lines if (stripped := line.strip()))
