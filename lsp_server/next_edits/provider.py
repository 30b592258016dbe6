"""Next edits of one editor: what is proposed, followed while the user types, until it is taken.

A proposal is made from the history when the user pauses. It moves with what is typed elsewhere, and
ends when its own text changes, when the edit that it follows from is undone, or when the user
dismisses it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lsp_server.documents.document import Document, Documents, Edit, Position, split_lines
from lsp_server.documents.workspace_folders import DocumentLocation, Folders
from lsp_server.editing.region import TrackedRegion
from lsp_server.next_edits.finding import Elsewhere, next_edits
from lsp_server.next_edits.history import EditHistory, RecordedEdit
from lsp_server.next_edits.proposal import Proposal

PAUSE_S = 0.25
"""A name is finished when nothing was typed for so long, or when the cursor has left it."""

_numbers = itertools.count(1)


@dataclass(slots=True, eq=False)
class PendingNextEdit:
    """A proposal at its place in a document, or in a file that is not open."""

    document: Document
    """The open document, or one made of the file's text."""
    is_open: bool
    region: TrackedRegion
    old_text: str
    new_text: str | None
    """None where the user is only led to the place."""
    title: str
    source: RecordedEdit
    number: int

    @property
    def uri(self) -> str:
        """Of its document."""
        return self.document.uri

    def is_valid(self) -> bool:
        """Whether its text is still what it was made for."""
        start, end = self.region.start, self.region.end
        if self.region.touched or end.line >= len(self.document.lines):
            return False
        if self.is_open and not self.document.is_open:
            return False
        return self.document.between(start, end) == self.old_text


class NextEditProvider:
    """Makes the next edits of one client."""

    def __init__(
        self,
        documents: Documents,
        folders: Folders,
        may_be_read: Callable[[Document], bool],
    ) -> None:
        """``may_be_read``: whether a document counts for others, see ``EditHistory``."""
        self._documents = documents
        self._folders = folders
        self._may_be_read = may_be_read
        self.history = EditHistory(may_be_read)
        self._pending: list[PendingNextEdit] = []
        self._made_for: tuple[RecordedEdit | None, float] = (None, 0.0)
        self._dismissed: set[tuple[str, str, str | None]] = set()
        self._search: asyncio.Task[None] | None = None
        self._asked = 0
        self.shown = 0
        self.accepted = 0
        self.rejected = 0

    # What the editor tells

    def opened(self, document: Document) -> None:
        """A document was opened. What was proposed in its file is proposed in it."""
        self.history.opened(document)
        for one in self._pending:
            if one.uri == document.uri:
                one.document, one.is_open = document, True

    def changed(self, document: Document, edits: list[Edit]) -> None:
        """A document was changed."""
        taken = self._taken(document, edits)
        if taken:
            self._pending = [one for one in self._pending if one not in taken]
            self.history.accepted(document, edits)
        else:
            self.history.changed(document, edits)
        for one in self._pending:
            if one.document is document:
                for edit in edits:
                    one.region.follow(edit)
        self._pending = [one for one in self._pending if not one.region.touched]

    def closed(self, uri: str) -> None:
        """A document was closed."""
        self.history.closed(uri)
        self._pending = [one for one in self._pending if one.uri != uri]

    def forget(self, uri: str) -> None:
        """A document may not be read any more."""
        self.history.forget(uri)
        self._pending = [one for one in self._pending if one.uri != uri]

    def accept(self, number: int) -> None:
        """The user took a next edit; its change comes as any other."""
        self.accepted += any(one.number == number for one in self._pending)

    def reject(self, number: int) -> None:
        """The user dismissed a next edit: it and its like stay away until it is made anew."""
        for one in self._pending:
            if one.number == number:
                self.rejected += 1
                self._dismissed.add((one.title, one.uri, one.new_text))
                self._pending.remove(one)
                return

    def _taken(self, document: Document, edits: list[Edit]) -> list[PendingNextEdit]:
        """The proposals whose change this is, so that it begins nothing of its own.

        Editors do not say a change as it was proposed: they leave out what its text begins or ends
        with as before, or what stands beside it. So the texts are compared.
        """
        before = self.history.lines_before(document)
        if before is None:
            return []
        near = [
            one
            for one in self._pending
            if one.document is document
            and one.new_text is not None
            and any(_is_near(edit, one.region) for edit in edits)
        ]
        for some in [near, *([one] for one in near)]:
            if some and _with(before, some) == document.lines:
                return some
        return []

    # What is proposed

    async def next_edits(
        self, document: Document, cursor: Position
    ) -> list[PendingNextEdit] | None:
        """Next edits, those of ``document`` first from the cursor on; None when a newer request
        came. Waits until a name that is being typed is finished."""
        self._asked += 1
        asked = self._asked
        last = self.history.last
        if last is not None and last.document is document and _is_inside(last, cursor):
            while (left := PAUSE_S - self.history.quiet_s()) > 0:
                await asyncio.sleep(left)
                if asked != self._asked:
                    return None
        self._renew()
        if self._search is not None:
            # A cancelled request does not end the search: the next one waits for it, too.
            await asyncio.shield(self._search)
        if asked != self._asked:
            return None
        known = set(self.history)
        self._pending = [one for one in self._pending if one.is_valid() and one.source in known]
        return sorted(self._pending, key=lambda one: _order(one, document.uri, cursor))

    def _renew(self) -> None:
        """Proposals of the last edit, where it is not what was looked at before."""
        last = self.history.last
        state = (last, last.changed_s if last is not None else 0.0)
        if state == self._made_for:
            return
        if last is not self._made_for[0]:
            self._dismissed.clear()
        self._made_for = state
        if last is None or not self._may_be_read(last.document):
            return
        found = next_edits(self.history)
        made = [self._placed(one, last, last.document) for one in found.proposals]
        # What an edit proposed when it was not finished goes; what others propose stays.
        self._pending = [one for one in self._pending if one.source is not last]
        if made:
            self._pending = []
        self._add(made)
        if found.elsewhere is not None:
            self._search = asyncio.create_task(self._look_elsewhere(found.elsewhere, last))

    def _add(self, made: list[PendingNextEdit]) -> None:
        self._pending += [
            one for one in made if (one.title, one.uri, one.new_text) not in self._dismissed
        ]

    async def _look_elsewhere(self, elsewhere: Elsewhere, source: RecordedEdit) -> None:
        """Files of the workspace that import what was changed."""
        place = self._folders.place(source.document.uri)
        if not place.folder:
            return
        opened = self._opened_in(place)
        folder = Path(place.folder)
        proposals = await asyncio.to_thread(
            lambda: list(elsewhere.proposals(folder, place.path, opened))
        )
        if source not in set(self.history):
            return
        unopened: dict[str, Document] = {}
        for one in proposals:
            document = self._document(folder, one, unopened)
            if document is not None:
                self._add([self._placed(one, source, document)])

    def _opened_in(self, place: DocumentLocation) -> dict[str, str]:
        """Open documents of a folder by their paths; those that may not be read have no text."""
        found = {}
        for document in self._documents:
            other = self._folders.place(document.uri)
            if other.folder == place.folder and document.uri.startswith("file:"):
                found[other.path] = document.text if self._may_be_read(document) else ""
        return found

    def _document(
        self, folder: Path, one: Proposal, unopened: dict[str, Document]
    ) -> Document | None:
        """The open document of a proposal's file, else one made of the text that was read; None
        where the document has changed since."""
        for document in self._documents:
            place = self._folders.place(document.uri)
            if place.folder == str(folder) and place.path == one.path:
                return document if document.text == one.text else None
        uri = (folder / one.path).as_uri()
        return unopened.setdefault(uri, Document(uri, "python", 0, one.text))

    def _placed(self, one: Proposal, source: RecordedEdit, document: Document) -> PendingNextEdit:
        hunk = one.hunks[0] if one.hunks else None
        start = document.position_at(one.start)
        end = document.position_at(hunk.end) if hunk is not None else start
        return PendingNextEdit(
            document=document,
            is_open=self._documents.find(document.uri) is document,
            region=TrackedRegion(start, end),
            old_text=document.between(start, end),
            new_text=hunk.text if hunk is not None else None,
            title=one.title,
            source=source,
            number=next(_numbers),
        )


def _is_inside(edit: RecordedEdit, cursor: Position) -> bool:
    return edit.line <= cursor.line < max(edit.end, edit.line + 1)


def _is_near(edit: Edit, region: TrackedRegion) -> bool:
    """Whether an edit lies in the lines of a region, with the one below it."""
    return region.start.line <= edit.start.line and edit.end.line <= region.end.line + 1


def _with(lines: list[str], taken: list[PendingNextEdit]) -> list[str]:
    """Lines of a document with the text of proposals, none of which overlap."""
    found = list(lines)
    for one in sorted(taken, key=lambda one: one.region.start, reverse=True):
        start, end = one.region.start, one.region.end
        head, tail = found[start.line][: start.column], found[end.line][end.column :]
        new = split_lines(f"{head}{one.new_text}{tail}")
        if end.line + 1 < len(found) and not new[-1]:
            new.pop()
        found[start.line : end.line + 1] = new
    return found


def _order(one: PendingNextEdit, uri: str, cursor: Position) -> tuple[bool, str, bool, Position]:
    is_elsewhere = one.uri != uri
    is_above = not is_elsewhere and one.region.start < cursor
    return (is_elsewhere, one.uri, is_above, one.region.start)
