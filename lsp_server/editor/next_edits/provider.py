"""Next edits of one editor: it proposes them and follows them while the user types.

A proposal is made when the user pauses: by the history, and where that settles nothing by the
model, which is asked for the window at the cursor. It moves with what is typed elsewhere, and ends
when its own text changes, when the edit that it follows from is undone, or when the user dismisses
it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pygls.uris import to_fs_path

from lsp_server.editor.editing.region import TrackedRegion
from lsp_server.editor.in_flight import InFlight
from lsp_server.editor.next_edits.accepted_renames import TakenPlaces
from lsp_server.editor.next_edits.finding import (
    LARGEST_TEXT,
    Elsewhere,
    edits_to_look_at,
    next_edits,
    refuse_large,
    size_of,
)
from lsp_server.editor.next_edits.history import EditHistory, RecordedEdit
from lsp_server.editor.next_edits.importers import looks_into_others
from lsp_server.editor.next_edits.model import ConfidentChanges, NextEditModel, WindowRequest
from lsp_server.editor.next_edits.notebook_text import NotebookText
from lsp_server.editor.next_edits.renames import renamed_by
from lsp_server.editor.next_edits.suggestion import Suggestion
from lsp_server.editor.next_edits.windows import window_at
from lsp_server.shared.contract.jobs import EDIT, PREFETCH
from lsp_server.shared.errors import WorkTakesTooLong
from lsp_server.shared.processes.function_process import FunctionProcess
from lsp_server.tasks.next_edits.formats import NextEditFormat
from lsp_server.text.documents.document import Document, Documents, Position, split_lines
from lsp_server.text.documents.workspace_folders import DocumentLocation, Folders
from lsp_server.text.syntax.languages import language_of_path
from lsp_server.text.text_edit import TextEdit
from repo_index.reading import decoded

if TYPE_CHECKING:
    from lsp_server.shared.settings import NextEditSettings

PAUSE_S = 0.25
"""A name is finished when nothing was typed for so long, or when the cursor has left it."""
AHEAD_S = 0.01
"""So long after a key the model is asked for the window around what was typed: if the user does
not go on, its answer is there, or nearly, once the editor asks."""

MOST_SEARCHES = 2
"""Of other files for one edit: a busy machine may be too slow for the first."""
SMALL_TEXT = 2_000
"""Characters of a text that is parsed several times within a moment."""

_numbers = itertools.count(1)

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class NextEditProvider:
    """Makes the next edits of one client."""

    def __init__(
        self,
        documents: Documents,
        folders: Folders,
        may_be_read: Callable[[Document], bool],
        model: NextEditModel | None = None,
        on_more: Callable[[str], None] = lambda uri: None,
        functions: FunctionProcess | None = None,
        runs_ahead: Callable[[], bool] = lambda: True,
    ) -> None:
        """``functions``: where what may take longer than a moment is computed; without it, here.
        ``may_be_read``: whether a document counts for others, see ``EditHistory``; ``model``: asks
        the model, where there is one; ``on_more``: told the URI of a document of which more is
        known than the last answer had; ``runs_ahead``: whether the model is asked before the editor
        asks."""
        self._documents = documents
        self._folders = folders
        self._may_be_read = may_be_read
        self.history = EditHistory(may_be_read)
        self._pending: list[Suggestion] = []
        self._made_for: tuple[RecordedEdit | None, float] = (None, 0.0)
        self._dismissed: set[tuple[str, str, str | None]] = set()
        self._settling: asyncio.Task[None] | None = None
        self._search: asyncio.Task[None] | None = None
        self._elsewhere: tuple[Elsewhere, RecordedEdit] | None = None
        """What is looked for in other files once the user pauses."""
        self._functions, self._runs_ahead = functions, runs_ahead
        self._given_up = ""
        """Why the last edit was not looked at."""
        self.model = model
        self._on_more = on_more
        self._flight: InFlight[_RunningRequest] = InFlight()
        self._answered: list[WindowRequest] = []
        """Windows that the model answered since the last edit."""
        self._taken_places = TakenPlaces()
        self._taken_texts: deque[tuple[str, str, str]] = deque(maxlen=32)
        """What was taken of the model's: document, old and new text."""
        self._settled: set[tuple[str, str, str | None]] = set()
        """What the history settled at last."""
        self._is_news = False
        """Whether the last change led to it."""
        self.goes_on = False
        """Whether the last change took a next edit, or typed the beginning of one."""
        self._took_settled = False
        """Whether the last change took what syntax settled: a chain is followed by nothing."""
        self.shown = 0
        self.accepted = 0
        self.rejected = 0

    # What the editor tells

    def opened(self, document: Document) -> None:
        """A document was opened. What was proposed in its file is proposed in it."""
        self.history.opened(document)
        for suggestion in self._pending:
            if suggestion.uri == document.uri:
                suggestion.move_to(document, is_open=True)

    def changed(self, document: Document, edits: list[TextEdit[Position]]) -> None:
        """A document was changed."""
        self._flight.stop()
        if self._settling is not None and self._settling.cancel():
            self._made_for = None, 0.0
        self._elsewhere = None
        accepted = self._taken(document, edits)
        self._keep(lambda suggestion: suggestion not in accepted)
        of_model = (each for each in accepted if each.is_of_model)
        self._taken_texts += [(each.uri, each.old_text, each.new_text or "") for each in of_model]
        before = self.history.last
        is_of_model = any(suggestion.is_of_model for suggestion in accepted)
        self._took_settled = bool(accepted) and not is_of_model
        if self._took_settled:
            self.history.accepted(document, edits)
        else:
            # What a model wrote and the user took is an edit like his own.
            self.history.changed(document, edits, "suggested" if accepted else "typed")
        self._taken_places.changed(document, edits, accepted)
        if before is not None and before not in set(self.history):
            self._taken_places.went_on(before, self.history.last)
        for suggestion in self._pending:
            if suggestion.document is document:
                suggestion.follow(edits)
        if not accepted:
            # The model has not seen what was typed, unless that is what it proposed.
            self._keep(lambda suggestion: not suggestion.is_of_model or suggestion.is_typed)
        self._keep(lambda suggestion: not suggestion.region.touched)
        self.goes_on = bool(accepted) or any(suggestion.is_typed for suggestion in self._pending)
        self._is_news = self._is_news and self.goes_on
        for suggestion in self._pending:
            if suggestion.is_typed and suggestion.is_of_model and self.history.last is not None:
                suggestion.source = self.history.last
            suggestion.is_typed = False
        self._answered.clear()
        shows_next_edits = self._flight.newest is not None
        if shows_next_edits and self._functions is not None:
            self._functions.prepare(partial(looks_into_others, ""))
        if shows_next_edits and self.model is not None and edits and self._runs_ahead():
            self._flight.soon(AHEAD_S, partial(self._start_ahead, document, edits[-1]))

    def closed(self, uri: str) -> None:
        """A document was closed."""
        self.history.closed(uri)
        self._taken_places.closed(uri)
        self._keep(lambda suggestion: suggestion.uri != uri)

    def forget(self, uri: str) -> None:
        """A document may not be read any more."""
        self.history.forget(uri)
        self._keep(lambda suggestion: suggestion.uri != uri)

    def accept(self, number: int) -> None:
        """The user took a next edit; its change comes as any other."""
        self.accepted += any(suggestion.number == number for suggestion in self._pending)

    def reject(self, number: int) -> None:
        """The user dismissed a next edit: it and its like stay away until it is made anew."""
        for suggestion in self._pending:
            if suggestion.number == number:
                self.rejected += 1
                self._dismissed.add((suggestion.title, suggestion.uri, suggestion.new_text))
                self._pending.remove(suggestion)
                return

    def condition(self, settings: NextEditSettings) -> dict[str, Any]:
        """For the status: the format that the model is asked in (empty without one), the gate by
        its name and as a joint probability, how many were shown, accepted and rejected, why the
        model's last answer had nothing, and what is wrong."""
        model = self.model
        fmt = model.format if model is not None else None
        return {
            "enabled": settings.enabled,
            "model": settings.model,
            "format": fmt.name if fmt is not None else "",
            "gate": settings.gate,
            "threshold": model.threshold if model is not None else None,
            "shown": self.shown,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "reason": self._given_up or (model.reason if model is not None else ""),
            "trouble": model.trouble if model is not None else "",
        }

    def _taken(self, document: Document, edits: list[TextEdit[Position]]) -> list[Suggestion]:
        """Return the proposals whose change this is, so that it begins nothing of its own.

        Editors do not say a change as it was proposed: they leave out what its text begins or ends
        with as before, or what is beside it. So the texts are compared.
        """
        before = self.history.lines_before(document)
        if before is None:
            return []
        mine = (each for each in self._pending if each.document is document)
        near = [each for each in mine if each.new_text is not None
                and any(_is_near(edit, each.region) for edit in edits)]  # fmt: skip
        for some in [near, *([suggestion] for suggestion in near)]:
            if some and _with(before, some) == document.lines:
                return some
        return []

    # What is proposed

    async def next_edits(self, document: Document, cursor: Position) -> list[Suggestion] | None:
        """Next edits, those of ``document`` first from the cursor on; None when a newer request
        came. Waits until a name that is being typed is finished."""
        mine = self._flight.begin()
        last = self.history.last
        if last is not None and last.document is document and last.is_at(cursor):
            if self.history.quiet_s() < PAUSE_S:
                # The answer is there sooner, but nobody sees it before the pause.
                self._start_model(document, cursor)
            while (remaining_s := PAUSE_S - self.history.quiet_s()) > 0:
                await asyncio.sleep(remaining_s)
                if self._flight.newest is not mine:
                    return None
        await self.settled()
        if self._elsewhere is not None:
            self._search = asyncio.create_task(self._look_elsewhere(*self._elsewhere))
            self._elsewhere = None
        # A cancelled request does not end it: the next one waits for it, too.
        if self._search is not None and not self._search.done():
            await asyncio.wait([self._search])
        await self._look_at_files()
        if self._flight.newest is not mine:
            return None
        self._drop_invalid()
        if not any(suggestion.document is document for suggestion in self._pending):
            # Until the first change comes, or there is none.
            running = self._start_model(document, cursor)
            while running is not None and running in self._flight and not running.has_answered:
                await self._flight.wait()
                if self._flight.newest is not mine:
                    return None
            self._drop_invalid()
        return sorted(self._pending, key=lambda each: _order(each, document.uri, cursor))

    async def settled(self) -> bool:
        """Return whether the last change led to next edits that need no model and still wait."""
        self._renew()
        # A cancelled request does not end it: the next one waits for it, too.
        if self._settling is not None and not self._settling.done():
            await asyncio.wait([self._settling])
        return self._is_news and any(not suggestion.is_of_model for suggestion in self._pending)

    async def _look_at_files(self) -> None:
        """Move what is proposed in files that are not open: they may have been written since."""
        files = {suggestion.document for suggestion in self._pending if not suggestion.is_open}
        if not files:
            return
        texts = await asyncio.to_thread(lambda: {file: _file_text(file.uri) for file in files})
        for file, text in texts.items():
            if text == file.text:
                continue
            now = Document(file.uri, file.language, 0, text or "")
            for suggestion in self._pending:
                if suggestion.document is file and not suggestion.is_open:
                    suggestion.move_to(now, is_open=False)

    def _drop_invalid(self) -> None:
        recorded = set(self.history)
        self._keep(lambda suggestion: suggestion.is_valid() and suggestion.source in recorded)

    def _keep(self, is_meant: Callable[[Suggestion], bool]) -> None:
        self._pending = list(filter(is_meant, self._pending))

    # What the model proposes

    def _start_model(
        self, document: Document, cursor: Position, priority: int = EDIT
    ) -> _RunningRequest | None:
        """Ask for the window at the cursor, unless that was done since the last edit; what runs."""
        request = self._request_at(document, cursor)
        if request is not None:
            running = _RunningRequest(request)
            self._flight.run(running)
            running.task = asyncio.create_task(self._ask(running, priority))
        return self._flight.running

    def _start_ahead(self, document: Document, edit: TextEdit[Position]) -> None:
        """Ask for the window after what was typed while it is seen whether the user goes on."""
        lines = edit.text.split("\n")
        column = len(lines[-1]) + (edit.start.column if len(lines) == 1 else 0)
        cursor = Position(edit.start.line + len(lines) - 1, column)
        if document.is_open and self._flight.running is None:
            self._start_model(document, cursor, PREFETCH)

    def _request_at(self, document: Document, cursor: Position) -> WindowRequest | None:
        """Return what the model is asked at a place; None where it is not, or has been."""
        fmt = self.model.format if self.model is not None else None
        if fmt is None or not self.history or self._took_settled:
            return None
        if not self._may_be_read(document) or sum(map(len, document.lines)) > LARGEST_TEXT:
            return None
        recorded = [*self._answered, *(suggestion.request for suggestion in self._flight)]
        if any(suggestion.holds(document, cursor) for suggestion in recorded):
            return None
        return self._window(document, cursor, fmt)

    async def _ask(self, running: _RunningRequest, priority: int) -> None:
        """Ask for the window at the cursor."""
        assert self.model is not None
        try:
            propose = partial(self._propose, running.request, running)
            await self.model.ask(running.request, propose, priority)
            self._answered.append(running.request)
        finally:
            self._has_answered(running)

    def _has_answered(self, running: _RunningRequest) -> None:
        running.has_answered = True
        self._flight.wake()

    def _window(
        self, document: Document, cursor: Position, fmt: NextEditFormat
    ) -> WindowRequest | None:
        """Return what is asked of the window around a place of a document."""
        assert self.model is not None
        recent = [edit for edit in self.history if self._may_be_read(edit.document)]
        paths = {edit.document.uri: self._path(edit.document) for edit in recent}
        is_typing = bool(recent) and recent[0].document is document and recent[0].is_at(cursor)
        window = window_at(
            *(document, cursor, fmt, self._path(document), recent, paths),
            is_typing=is_typing,
            most_tokens=self.model.affordable_tokens,
        )
        if window is None:
            return None
        folder = self._folders.place(document.uri).folder
        return WindowRequest(window, fmt, document, recent, folder)

    def _path(self, document: Document) -> str:
        location = self._folders.place(document.uri)
        return location.path if location.folder else PurePosixPath(location.path).name

    def _propose(
        self, request: WindowRequest, running: _RunningRequest, confident: ConfidentChanges
    ) -> None:
        """Changes of a window: those that overlap nothing that is proposed already."""
        last = self.history.last
        if last is None or self._flight.running is not running:
            return
        suggestions = []
        for change, _ in confident:
            old_text = request.document.between(change.start, change.end)
            region = TrackedRegion(change.start, change.end)
            title = _title(old_text, change.text)
            suggestion = self._pending_at(request.document, region, change.text, title, last)
            suggestion.is_of_model = True
            is_again = (suggestion.uri, old_text, change.text) in self._taken_texts
            if not is_again and not any(_overlap(suggestion, other) for other in self._pending):
                suggestions.append(suggestion)
        before = len(self._pending)
        self._add(suggestions)
        if len(self._pending) > before:
            if running.has_answered:
                self._on_more(running.request.document.uri)
            self._has_answered(running)

    # What the history settles

    def _renew(self) -> None:
        """Proposals of the last edit, where it is not what was looked at before."""
        last = self.history.last
        state = (last, last.changed_s if last is not None else 0.0)
        if state == self._made_for:
            return
        if last is not self._made_for[0]:
            self._dismissed.clear()
        self._made_for, self._given_up = state, ""
        if last is not None and self._may_be_read(last.document):
            self._settling = asyncio.create_task(self._settle(last))

    async def _settle(self, last: RecordedEdit) -> None:
        document = last.document
        text = document.text
        try:
            refuse_large(document)
            notebook = NotebookText.around(document, self._documents, self._may_be_read)
            all_edits = iter(self.history) if notebook is None else map(notebook.of, self.history)
            edits = edits_to_look_at(itertools.chain(all_edits, self.history.overwritten))
            proposed = await self._compute(size_of(edits), next_edits, edits)
            typed = self._taken_places.typed(last)
            again = await self._compute(len(text), renamed_by, typed) if typed is not None else None
        except WorkTakesTooLong as reason:
            self._given_up = str(reason)
            return
        if self.history.last is not last or document.text != text:
            self._made_for = None, 0.0
            return
        suggestions = [
            self._placed(suggestion, last, document)
            if notebook is None
            else self._in_cell(suggestion, last, notebook)
            for suggestion in proposed.edits
        ]
        suggestions += [
            self._pending_at(suggestion.document, suggestion.region, new, title, last)
            for suggestion, new, title in (self._taken_places.of(last, again) if again else ())
        ]
        # What an edit settled when it was not finished goes; what others propose stays.
        self._keep(lambda suggestion: suggestion.is_of_model or suggestion.source is not last)
        if suggestions:
            self._pending = []
            self._flight.stop()
        self._add(suggestions)
        settled = {(each.uri, each.title, each.new_text) for each in suggestions}
        last.is_followed = bool(settled) or proposed.elsewhere is not None
        self._is_news = bool(settled) and settled != self._settled
        self._settled = settled
        self._elsewhere = (proposed.elsewhere, last) if proposed.elsewhere is not None else None

    async def _compute(
        self,
        size: int,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Return what a function makes of ``size`` characters. Raises WorkTakesTooLong."""
        if self._functions is None or size <= SMALL_TEXT:
            return function(*arguments, **named)
        return await self._functions.call(function, *arguments, **named)

    def _add(self, suggestions: list[Suggestion]) -> None:
        keys = [(each.title, each.uri, each.new_text) for each in suggestions]
        pairs = zip(keys, suggestions, strict=True)
        self._pending += [suggestion for key, suggestion in pairs if key not in self._dismissed]

    async def _look_elsewhere(self, elsewhere: Elsewhere, source: RecordedEdit) -> None:
        """Files of the workspace that import what was changed."""
        location = self._folders.place(source.document.uri)
        if not location.folder:
            return
        # Other files know the names of the text without the edit.
        opened = {**self.opened_in(location), location.path: source.text_before()}
        folder = Path(location.folder)
        files = folder, location.path, opened
        for _ in range(MOST_SEARCHES):
            try:
                proposed = await self._compute(LARGEST_TEXT, elsewhere.edits, *files)
                break
            except WorkTakesTooLong as reason:
                self._given_up = str(reason)
        else:
            return
        if source not in set(self.history):
            return
        self._given_up, self._is_news = "", self._is_news or bool(proposed)
        unopened: dict[str, Document] = {}
        for path, text, suggestion in proposed:
            if path not in unopened:
                document = self.document_of(folder, path, text, language_of_path(path))
                if document is None or not self._may_be_read(document):
                    continue
                unopened[path] = document
            self._add([self._placed(suggestion, source, unopened[path])])

    def opened_in(self, location: DocumentLocation) -> dict[str, str]:
        """Open documents of a folder by their paths; those that may not be read have no text."""
        files = (each for each in self._documents if each.uri.startswith("file:"))
        places = ((document, self._folders.place(document.uri)) for document in files)
        return {place.path: document.text if self._may_be_read(document) else ""
                for document, place in places if place.folder == location.folder}  # fmt: skip

    def document_of(self, folder: Path, path: str, text: str, language: str) -> Document | None:
        """Return the open document of a file, else one made of the text that was read; None where
        the open one has changed since."""
        for document in self._documents:
            location = self._folders.place(document.uri)
            if location.folder == str(folder) and location.path == path:
                return document if document.text == text else None
        return Document((folder / path).as_uri(), language, 0, text)

    def _placed(self, edit: TextEdit[int], source: RecordedEdit, document: Document) -> Suggestion:
        region = TrackedRegion(document.position_at(edit.start), document.position_at(edit.end))
        return self._pending_at(document, region, _new_text(edit), edit.note, source)

    def _in_cell(
        self, edit: TextEdit[int], source: RecordedEdit, notebook: NotebookText
    ) -> Suggestion:
        cell, start = notebook.place(edit.start)
        region = TrackedRegion(start, notebook.place(edit.end)[1])
        return self._pending_at(cell, region, _new_text(edit), edit.note, source)

    def _pending_at(
        self,
        document: Document,
        region: TrackedRegion,
        text: str | None,
        title: str,
        source: RecordedEdit,
    ) -> Suggestion:
        return Suggestion(
            document=document,
            is_open=self._documents.find(document.uri) is document,
            region=TrackedRegion(region.start, region.end),
            old_text=document.between(region.start, region.end),
            new_text=text,
            title=title,
            source=source,
            number=next(_numbers),
        )


@dataclass(slots=True, eq=False)
class _RunningRequest:
    """A request to the model that runs: the window at the cursor."""

    request: WindowRequest
    has_answered: bool = False
    """With the first change, or when that window is answered."""
    task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """Cancel the request: something was typed."""
        if self.task is not None:
            self.task.cancel()


def _file_text(uri: str) -> str | None:
    """Return what is in a file now; None where there is none that can be read."""
    try:
        return decoded(Path(to_fs_path(uri) or "").read_bytes())
    except (OSError, ValueError):
        return None


def _new_text(edit: TextEdit[int]) -> str | None:
    """Return none where the user is only led to the place."""
    return edit.text if edit.text or edit.start < edit.end else None


def _title(old: str, new: str) -> str:
    old, new = (" ".join(text.split())[:60] for text in (old, new))
    if not old:
        return f"insert {new}"
    return f"change {old} to {new}" if new else f"delete {old}"


def _overlap(suggestion: Suggestion, other: Suggestion) -> bool:
    """Return whether two changes of a document touch the same text."""
    one, two = suggestion.region, other.region
    is_apart = one.end < two.start or two.end < one.start
    return suggestion.document is other.document and not is_apart


def _is_near(edit: TextEdit[Position], region: TrackedRegion) -> bool:
    """Return whether an edit reaches the lines of a region, or the one below it."""
    return region.start.line <= edit.end.line and edit.start.line <= region.end.line + 1


def _with(lines: list[str], accepted: list[Suggestion]) -> list[str]:
    """Return lines of a document with the text of proposals, none of which overlap."""
    proposed = list(lines)
    for suggestion in sorted(accepted, key=lambda each: each.region.start, reverse=True):
        start, end = suggestion.region.start, suggestion.region.end
        head, tail = proposed[start.line][: start.column], proposed[end.line][end.column :]
        new = split_lines(f"{head}{suggestion.new_text}{tail}")
        if end.line + 1 < len(proposed) and not new[-1]:
            new.pop()
        proposed[start.line : end.line + 1] = new
    return proposed


def _order(suggestion: Suggestion, uri: str, cursor: Position) -> tuple[bool, str, bool, Position]:
    is_elsewhere = suggestion.uri != uri
    is_above = not is_elsewhere and suggestion.region.start < cursor
    return (is_elsewhere, suggestion.uri, is_above, suggestion.region.start)
