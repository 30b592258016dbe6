"""The user's recent edits in all documents. Neighbouring changes are joined to one edit.

A formatter, a checkout or a pasted block says nothing of what comes next, and what was undone was
never meant. What was pasted or suggested within lines counts, and its edit says so. The history
lives as long as the editor's session.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from lsp_server.text.documents.document import Document, Position
from lsp_server.text.syntax.resolved_names import ResolvedNames
from lsp_server.text.text_edit import TextEdit
from repo_index.common_ends import common_ends

NEAR_LINES = 8
"""A change joins the last edit when it is at most so many lines away (Zed's number)."""
PAUSE_S = 1.0
"""A longer pause begins another edit, unless the same word is typed on."""
LINE_PAUSE_S = 10.0
"""A longer one in lines of which nothing follows yet."""
BULK_LINES = 8
BULK_CHARACTERS = 200
"""One change of more is no typing."""
PASTED_CHARACTERS = 20
"""One change that inserts more, or several lines with text, was pasted, whoever types."""
LARGEST_CHARACTERS = 6_000
"""An edit of more text than this is left out."""
LONGEST_HISTORY = 32
MOST_OVERWRITTEN = 4

Origin = Literal["typed", "pasted", "suggested"]
"""How an edit was made: key by key, at once, or by taking a suggestion."""
_numbers = itertools.count()


@dataclass(slots=True, eq=False)
class RecordedEdit:
    """Whole lines of a document that became others.

    ``line`` is the first of them in the document as it is now, 0-based; it moves with what is
    changed above it.
    """

    document: Document
    line: int
    old: list[str]
    new: list[str]
    changed_s: float
    """When it was last changed, by the history's clock."""
    origin: Origin = "typed"
    """Of the part that was not typed, where there is one."""
    number: int = field(default_factory=lambda: next(_numbers))
    """It changes with what the edit is, and not when it moves."""
    is_followed: bool = False
    """Something follows from it, so that it is whole: what is typed elsewhere is another edit."""

    @property
    def end(self) -> int:
        """The line after the new ones, in the document as it is now."""
        return self.line + len(self.new)

    @property
    def old_text(self) -> str:
        """The lines as they were."""
        return "".join(self.old)

    @property
    def new_text(self) -> str:
        """The lines as they are."""
        return "".join(self.new)

    def is_at(self, position: Position) -> bool:
        """Return whether a place of its document is in its lines, or where it deleted them."""
        return self.line <= position.line < max(self.end, self.line + 1)

    def text_before(self) -> str:
        """Return the document's text without this edit."""
        lines = self.document.lines
        return "".join([*lines[: self.line], *self.old, *lines[self.end :]])

    def names_before(self) -> ResolvedNames | None:
        """Return the names of the document without this edit; None without a grammar."""
        return ResolvedNames.of(self.text_before(), self.document.language, self.document.uri)

    def names_now(self) -> ResolvedNames | None:
        """Return the names of the document with this edit; None without a grammar."""
        return ResolvedNames.of(self.document.text, self.document.language, self.document.uri)

    def start_offset(self) -> int:
        """Return code points of the document before the edit; with it and without it."""
        return sum(map(len, self.document.lines[: self.line]))


@dataclass(frozen=True, slots=True)
class _Change:
    """Lines that one notification changed."""

    line: int
    old: list[str]
    new: list[str]

    @property
    def end_before(self) -> int:
        return self.line + len(self.old)

    @property
    def is_bulk(self) -> bool:
        old, new = "".join(self.old), "".join(self.new)
        head, tail = common_ends(old, new)
        changed = max(len(old), len(new)) - head - tail
        lines = max(len(self.old), len(self.new))
        return changed > BULK_CHARACTERS or lines > BULK_LINES


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a document: its line, and its columns in code points."""

    line: int
    start: int
    end: int

    @classmethod
    def typed(cls, document: Document, edit: TextEdit[Position]) -> _Word:
        """Return the word that an edit wrote, or in which it deleted."""
        if edit.start.line >= len(document.lines) or "\n" in edit.text:
            return cls(-1, 0, 0)
        line = document.lines[edit.start.line]
        start = min(edit.start.column, len(line))
        end = min(start + len(edit.text), len(line))
        while start > 0 and _is_of_word(line[start - 1]):
            start -= 1
        while end < len(line) and _is_of_word(line[end]):
            end += 1
        return cls(edit.start.line, start, end)

    def touches(self, edit: TextEdit[Position]) -> bool:
        """Return whether an edit changes this word, or goes on after it."""
        is_here = edit.start.line == edit.end.line == self.line
        return is_here and edit.start.column <= self.end and edit.end.column >= self.start


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


class EditHistory:
    """The edits of one client, the latest last. Not thread-safe: the event loop owns it.

    ``may_be_read`` says whether a document may be read for others: none that holds secrets, and
    none that is ignored or excluded.
    """

    def __init__(
        self, may_be_read: Callable[[Document], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._may_be_read = may_be_read
        self._clock = clock
        self._lines: dict[str, tuple[Document, list[str]]] = {}
        """The lines of each document as they were after the last change."""
        self._edits: deque[RecordedEdit] = deque(maxlen=LONGEST_HISTORY)
        self.overwritten: deque[RecordedEdit] = deque(maxlen=MOST_OVERWRITTEN)
        """Edits whose lines changed again, the latest first, in their documents as they were."""
        self._joins = False
        """Whether the next change may join the last edit."""
        self._word = _Word(-1, 0, 0)
        """The word that was typed at last, in the last edit's document."""

    def __iter__(self) -> Iterator[RecordedEdit]:
        """Return the edits, the latest first."""
        return iter(list(reversed(self._edits)))

    def __len__(self) -> int:
        return len(self._edits)

    @property
    def last(self) -> RecordedEdit | None:
        """The latest edit."""
        return self._edits[-1] if self._edits else None

    def quiet_s(self) -> float:
        """Return seconds since the latest edit changed; infinite without one."""
        return self._clock() - self._edits[-1].changed_s if self._edits else float("inf")

    def lines_before(self, document: Document) -> list[str] | None:
        """Return the lines of a document as they were after the last change that was told; None
        where it is not known."""
        entry = self._lines.get(document.uri)
        return entry[1] if entry is not None and entry[0] is document else None

    def opened(self, document: Document) -> None:
        """A document was opened."""
        self.forget(document.uri)
        self._lines[document.uri] = document, list(document.lines)

    def changed(
        self, document: Document, edits: list[TextEdit[Position]], origin: Origin = "typed"
    ) -> None:
        """One notification changed a document by ``edits``; it reads as it does after them.
        ``origin``: what is known of how it was made."""
        change = self._read(document, edits)
        if change is None:
            return
        if origin == "typed" and any(map(_is_pasted, edits)):
            origin = "pasted"
        is_typed = not change.is_bulk and not _apart(edits) and self._may_be_read(document)
        goes_on = self._word.touches(edits[0])
        self._word = _Word.typed(document, edits[0])
        if is_typed and self._joined(document, change, goes_on, origin):
            return
        undone = self._undone(document, change)
        self._move(document, change)
        self._joins = is_typed and not undone
        if is_typed and not undone:
            lines = change.line, change.old, change.new
            self._add(RecordedEdit(document, *lines, self._clock(), origin))

    def suggested(self, document: Document) -> None:
        """Return what was just changed in a document was a suggestion that the user took."""
        if self.last is not None and self.last.document is document:
            self.last.origin = "suggested"

    def accepted(self, document: Document, edits: list[TextEdit[Position]]) -> None:
        """A change as a next edit proposed it: it begins nothing of its own. The edit that it
        follows from stays the last one, with what was changed of its own lines."""
        change = self._read(document, edits)
        if change is None:
            return
        by = len(change.new) - len(change.old)
        for edit in self._edits:
            if edit.document is not document or edit.end <= change.line:
                continue
            if edit.line >= change.end_before:
                edit.line += by
            else:
                edit.line, edit.old, edit.new = _union(edit, change, document.lines)
                edit.number = next(_numbers)

    def closed(self, uri: str) -> None:
        """A document was closed; what was done in it stays known by its text."""
        self._lines.pop(uri, None)

    def forget(self, uri: str) -> None:
        """Nothing of a document may be known any more: it was opened anew, or holds secrets."""
        self._lines.pop(uri, None)
        remaining = [edit for edit in self.overwritten if edit.document.uri != uri]
        self.overwritten = deque(remaining, MOST_OVERWRITTEN)
        others = [edit for edit in self._edits if edit.document.uri != uri]
        if len(others) != len(self._edits):
            self._edits = deque(others, LONGEST_HISTORY)
            self._joins = False

    def clear(self) -> None:
        """Forget all edits."""
        self._edits.clear()
        self.overwritten.clear()
        self._joins = False

    # How a change becomes an edit

    def _read(self, document: Document, edits: list[TextEdit[Position]]) -> _Change | None:
        """Return the lines that ``edits`` changed; None where they changed none, or where the
        document was not known."""
        before = self.lines_before(document)
        if before is None:
            self.opened(document)
            return None
        change = _changed_lines(before, document.lines, edits)
        if change is not None:
            before[change.line : change.end_before] = change.new
        return change

    def _add(self, edit: RecordedEdit) -> None:
        """Keep an edit that changes more than blanks and is not too large."""
        is_large = len(edit.old_text) + len(edit.new_text) > LARGEST_CHARACTERS
        if is_large or edit.old_text.split() == edit.new_text.split():
            self._joins = False
        else:
            self._edits.append(edit)

    def _joined(self, document: Document, change: _Change, goes_on: bool, origin: Origin) -> bool:
        """Return whether a change went into the last edit. goes_on: it changes the word of that."""
        last = self.last
        if last is None or not self._joins or last.document is not document:
            return False
        is_near = change.line <= last.end + NEAR_LINES
        is_near = is_near and last.line <= change.end_before + NEAR_LINES
        if last.is_followed:
            is_near = change.line < last.end and last.line < change.end_before
        is_within = last.line <= change.line and change.end_before <= last.end
        is_within = is_within and len(change.old) == len(change.new) and not last.is_followed
        pause_s = LINE_PAUSE_S if is_within else PAUSE_S
        is_prompt = self._clock() - last.changed_s <= pause_s
        if not (is_near and is_prompt) and not goes_on:
            return False
        joined = _union(last, change, document.lines)
        self._edits.pop()
        self._move(document, change)
        if origin == "typed":
            origin = last.origin
        self._add(RecordedEdit(document, *joined, self._clock(), origin))
        return True

    def _undone(self, document: Document, change: _Change) -> bool:
        """Return whether a change takes back an edit, which then was never made."""
        for edit in self._edits:
            same_place = edit.document is document and edit.line == change.line
            if same_place and edit.new == change.old and edit.old == change.new:
                self._edits.remove(edit)
                return True
        return False

    def _move(self, document: Document, change: _Change) -> None:
        """Earlier edits below a change move with it; of those that it overwrites it is known what
        they were."""
        by = len(change.new) - len(change.old)
        remaining = []
        for edit in self._edits:
            if edit.document is document:
                if edit.line >= change.end_before:
                    edit.line += by
                elif edit.end > change.line:
                    self.overwritten.appendleft(_as_it_was(edit, change))
                    continue
            remaining.append(edit)
        if len(remaining) != len(self._edits):
            self._edits = deque(remaining, LONGEST_HISTORY)


def _as_it_was(edit: RecordedEdit, change: _Change) -> RecordedEdit:
    """Return an edit in its document as it was before a change."""
    document, lines = edit.document, edit.document.lines
    end = change.line + len(change.new)
    text = "".join([*lines[: change.line], *change.old, *lines[end:]])
    return replace(edit, document=Document(document.uri, document.language, 0, text))


def _is_pasted(edit: TextEdit[Position]) -> bool:
    text = edit.text.strip()
    return len(text) > PASTED_CHARACTERS or len(text.splitlines()) > 1


def _apart(edits: list[TextEdit[Position]]) -> bool:
    """Return whether edits of one notification lie at places that no keystroke changes together."""
    lines = {edit.start.line for edit in edits} | {edit.end.line for edit in edits}
    return len(edits) > 1 and max(lines) - min(lines) > 1


def _changed_lines(
    before: list[str], after: list[str], edits: list[TextEdit[Position]]
) -> _Change | None:
    """Return the lines that differ, looked for where the edits say; None where none does."""
    added = len(after) - len(before)
    if len(edits) == 1:
        # A line end may be joined with the line before.
        first = max(0, edits[0].start.line - 1)
        last = min(len(before), edits[0].end.line + 2)
    else:
        first, last = 0, len(before)
    old, new = before[first:last], after[first : last + added]
    head, tail = common_ends(old, new)
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    return _Change(first + head, old, new) if old or new else None


def _union(
    last: RecordedEdit, change: _Change, lines: list[str]
) -> tuple[int, list[str], list[str]]:
    """Return the place, old and new lines of an edit that a change goes on with.

    Both are given by lines of the document between them; what neither touched is in both.
    """
    first = min(last.line, change.line)
    end = max(last.end, change.end_before)
    by = len(change.new) - len(change.old)
    new = lines[first : end + by]
    # The document before the change, from ``first`` to ``end``, then without the last edit.
    between = [*lines[first : change.line], *change.old, *lines[change.line + len(change.new) :]]
    between = between[: end - first]
    old = [*between[: last.line - first], *last.old, *between[last.end - first :]]
    head, tail = common_ends(old, new)
    return first + head, old[head : len(old) - tail], new[head : len(new) - tail]
