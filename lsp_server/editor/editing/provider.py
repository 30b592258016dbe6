"""Edits by instruction: the model rewrites a region, the editor gets the fewest changed lines. An
edit whose region was touched meanwhile is refused; nothing typed is ever overwritten."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from lsp_server.editor.editing.checks import (
    UNCHANGED,
    checked_text,
    doubt_about,
    noted_hunks,
    refuse_unparsed,
    sure_of,
)
from lsp_server.editor.editing.hunks import apply_hunks, unified_diff
from lsp_server.editor.editing.instruction_comments import comment_span, without_span
from lsp_server.editor.editing.region import TrackedRegion, whole_lines
from lsp_server.editor.editing.rename_wordings import asks_for_rename, replacement_in
from lsp_server.editor.editing.renames import AskedRename, EditedPart, FileEdit, told_elsewhere
from lsp_server.editor.editing.replacements import settled_changes
from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import EDIT, EditJob, JobResult, Span, unchanged
from lsp_server.shared.errors import (
    EditRefused,
    EngineUnavailable,
    RedraftError,
    StaleDocument,
    WorkTakesTooLong,
)
from lsp_server.shared.processes.function_process import FunctionProcess
from lsp_server.shared.settings import Settings
from lsp_server.text.documents.document import Document, Position
from lsp_server.text.documents.invisible_characters import hidden_warning
from lsp_server.text.documents.secret_documents import withheld_warning
from lsp_server.text.text_edit import TextEdit

AROUND_CHARACTERS = 8_000
SMALL_TEXT = 4_000
"""Characters of a text that is parsed several times within a moment."""
MAX_INSTRUCTION_CHARACTERS = 4_000


@dataclass(slots=True)
class EditRequest:
    """The lines to rewrite and the instruction for them."""

    document: Document
    path: str
    workspace: str
    start: Position
    end: Position
    instruction: str
    plain: bool = False
    with_comment: bool = False
    """The first line ends in the instruction itself, as a comment, which goes away."""
    withheld: str = ""
    """The reason to treat the document as secret: the model then reads the selection alone."""
    secret: bool = False
    """The document seems to hold secrets, allowed by the user or not."""
    takes_others: bool = False
    """The edits of other files that a rename brings are applied with it."""


@dataclass(slots=True)
class EditResult:
    """An edit that fits the document as it is now."""

    version: int
    changes: list[TextEdit[Position]]
    text: str
    """The region's new text."""
    diff: str
    warning: str
    """A sentence that the user should read before accepting; may be empty."""
    result: JobResult = field(repr=False)
    others: Sequence[FileEdit] = ()
    """Edits of other files, those of a file one after another."""


@dataclass(slots=True)
class PendingEdit:
    """An edit under way: the job of the model and the region that its text replaces."""

    request: EditRequest
    job: EditJob
    region: TrackedRegion
    selection: str
    comment: tuple[int, int]
    """Characters of the selection that are the instruction itself; the model does not see them."""
    where: EditedPart
    """The code in the document as it was."""
    version: int
    """That of the document."""
    renamed: AskedRename | None = None
    """The changes where the instruction is a rename."""


OnText = Callable[[str, int], None]
"""Called with the text so far and its tokens."""
Help = Callable[[str], Awaitable[str]]
"""Says of a model that did not make an edit what would help; empty for nothing."""


class EditProvider:
    """Makes the edits of one client."""

    def __init__(
        self,
        client: str,
        settings: Callable[[], Settings],
        engine: Callable[[], EngineInterface],
        functions: FunctionProcess | None = None,
        what_helps: Help | None = None,
        elsewhere: Callable[..., list[FileEdit]] | None = None,
        opened: Callable[[str], Mapping[str, str]] = lambda uri: {},
    ) -> None:
        """``functions`` computes renames in larger texts; without it they are computed here.
        ``elsewhere``: makes a rename in the other files of a folder. ``opened``: the texts of open
        documents by their paths in the folder of one."""
        self._elsewhere, self._opened = elsewhere, opened
        self._functions = functions
        self._what_helps = what_helps
        self._client = client
        self._settings = settings
        self._engine = engine
        self._regions: dict[str, list[TrackedRegion]] = {}

    def follow(self, uri: str, edit: TextEdit[Position]) -> None:
        """A document changed: the regions under edit move with it."""
        for region in self._regions.get(uri, ()):
            region.follow(edit)

    @contextmanager
    def begin(self, request: EditRequest) -> Iterator[PendingEdit]:
        """Record the region that ``request`` edits, before anything is awaited, and follow it until
        the context ends. Raises EditRefused."""
        document = request.document
        start, end = whole_lines(document, request.start, request.end)
        selection = document.between(start, end)
        comment = comment_span(selection) if request.with_comment else (0, 0)
        code = selection[: comment[0]] + selection[comment[1] :]
        job = self._job(request, code, start, end)
        text, offset = document.text, document.offset(start)
        text = text[:offset] + code + text[offset + len(selection) :]
        where = EditedPart(text, offset, offset + len(code), document.language, request.path)
        region = TrackedRegion(start, end)
        pending = PendingEdit(request, job, region, selection, comment, where, document.version)
        regions = self._regions.setdefault(document.uri, [])
        regions.append(pending.region)
        try:
            yield pending
        finally:
            regions.remove(pending.region)

    async def finish(self, pending: PendingEdit, on_text: OnText | None = None) -> EditResult:
        """Return the edit, for the document as it is when the model has finished. Cancelling the
        coroutine stops the decode loop. Raises EditRefused or StaleDocument."""
        try:
            edit = await self._finished(pending, on_text)
        except RedraftError as error:
            error.private = bool(pending.request.withheld)
            raise
        if reason := pending.request.withheld:
            edit.warning = "; ".join(filter(None, [withheld_warning(reason), edit.warning]))
        return edit

    async def _finished(self, pending: PendingEdit, on_text: OnText | None) -> EditResult:
        pending.renamed = await self._renamed(pending)
        if pending.renamed is not None:
            pending.renamed = await self._with_others(pending.renamed, pending)
            # Syntax tells what a rename makes of the code: a model could only spoil it.
            result = unchanged(pending.renamed.code(pending.where))
        else:
            result = await self._generate(pending.job, on_text)
        document, region = pending.request.document, pending.region
        if not document.is_open:
            raise StaleDocument(
                "the document was closed or opened again while it was edited; edit again"
            )
        is_other = pending.renamed is not None and document.version != pending.version
        is_other |= document.between(region.start, region.end) != pending.selection
        if region.touched or is_other:
            raise StaleDocument("the lines changed while they were being edited; edit again")
        if pending.renamed is not None:
            return self._fitted(pending, result)
        try:
            edit = self._fitted(pending, result)
        except EditRefused as error:
            raise EditRefused(await self._with_help(str(error))) from None
        if not edit.changes and not edit.warning:
            edit.warning = await self._with_help(UNCHANGED)
        return edit

    async def _with_help(self, message: str) -> str:
        """Return ``message`` about a model's answer, followed by advice if there is any."""
        status, help_of = self._engine().status, self._what_helps
        advice = await help_of(status.model) if help_of and not status.server else ""
        return f"{message}. {advice[:1].upper()}{advice[1:]}" if advice else message

    async def edit(self, request: EditRequest, on_text: OnText | None = None) -> EditResult:
        """Begin and finish an edit."""
        with self.begin(request) as pending:
            return await self.finish(pending, on_text)

    async def _renamed(self, pending: PendingEdit) -> AskedRename | None:
        instruction, where = pending.request.instruction, pending.where
        is_long = asks_for_rename(instruction, where.code) or replacement_in(instruction)
        if self._functions is None or not is_long or len(where.text) <= SMALL_TEXT:
            return settled_changes(instruction, where)
        try:
            return await self._functions.call(settled_changes, instruction, where)
        except WorkTakesTooLong as error:
            raise EditRefused(f"the rename takes {error}; select fewer lines") from None

    async def _with_others(self, renamed: AskedRename, pending: PendingEdit) -> AskedRename:
        """Return ``renamed``, and its edits of other files, or told that these keep the name."""
        request = pending.request
        folder = "" if request.withheld or not renamed.declared else request.workspace
        if self._elsewhere is None or self._functions is None or not folder:
            return renamed
        opened = self._opened(request.document.uri)
        try:
            search = self._functions.call(self._elsewhere, renamed, pending.where, folder, opened)
            uses = await search
            sentence = told_elsewhere(renamed.old, uses, are_renamed=request.takes_others)
        except WorkTakesTooLong:
            uses, sentence = [], "other files were not looked at"
        doubt = "; ".join(filter(None, [renamed.doubt, sentence]))
        return replace(renamed, doubt=doubt, others=tuple(uses) if request.takes_others else ())

    def _job(self, request: EditRequest, code: str, start: Position, end: Position) -> EditJob:
        if not request.instruction.strip():
            raise EditRefused("the instruction is empty; say what should change")
        if request.withheld and (request.start == request.end or request.with_comment):
            raise EditRefused(
                f"the file is held back ({request.withheld}); select the lines to change yourself"
            )
        document, settings = request.document, self._settings().edit
        if not code.strip():
            raise EditRefused("nothing is selected; select the lines to change")
        text, offset, status = document.text, document.offset(start), self._engine().status
        around = 0 if request.withheld else AROUND_CHARACTERS
        return EditJob(
            workspace="" if request.withheld else request.workspace,
            path=request.path,
            instruction=request.instruction[:MAX_INSTRUCTION_CHARACTERS],
            selection=code,
            before=text[max(0, offset - around) : offset],
            after=text[document.offset(end) :][:around],
            language=document.language,
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
            secret=request.secret or bool(request.withheld),
            plain=request.plain,
            entropy_k=settings.likeliest,
            sure=sure_of(status.model) if not status.server else None,
        )

    async def _generate(self, job: EditJob, on_text: OnText | None) -> JobResult:
        if reason := self._engine().refused:
            raise EngineUnavailable(reason)
        text, tokens = "", 0

        def add(spans: list[Span]) -> None:
            nonlocal text, tokens
            text += "".join(span.text for span in spans)
            tokens += len(spans)
            if on_text is not None:
                on_text(text, tokens)

        call = self._engine().ask(job, self._client, add, EDIT)
        limit = self._settings().edit.timeout_seconds
        try:
            result: JobResult | None = await asyncio.wait_for(call.result(), limit)
        except asyncio.TimeoutError:
            raise EditRefused(f"the edit took longer than {limit:g} s and was stopped") from None
        if result is None or result.stopped_by == "cancelled":
            raise EditRefused("the edit was stopped")
        return result

    def _fitted(self, pending: PendingEdit, result: JobResult) -> EditResult:
        document, job = pending.request.document, pending.job
        language, instruction = document.language, job.instruction
        before = document.text
        if pending.renamed is not None:
            new_code, doubt = result.text, pending.renamed.doubt
        else:
            new_code = checked_text(job.selection, result)
            # A small model answers some things that do not parse.
            is_small = sure_of(self._engine().status.model) is not None
            if is_small or asks_for_rename(instruction, job.selection):
                refuse_unparsed(job.selection, new_code, language)
            doubt = doubt_about(
                *(job.selection, new_code, language, instruction, before),
                is_unsure=result.is_unsure,
            )
        hunks = self._hunks(pending, new_code)
        after = apply_hunks(before, hunks)
        return EditResult(
            version=document.version,
            changes=[
                TextEdit(
                    document.position_at(hunk.start),
                    document.position_at(hunk.end),
                    hunk.text,
                    hunk.note,
                )
                for hunk in hunks
            ],
            text=new_code,
            diff=unified_diff(before, after, job.path),
            warning="; ".join(filter(None, [hidden_warning(pending.selection, new_code), doubt])),
            result=result,
            others=pending.renamed.others if pending.renamed is not None else (),
        )

    @staticmethod
    def _hunks(pending: PendingEdit, new_code: str) -> list[TextEdit[int]]:
        """Return the noted hunks of the document that turn the selection into ``new_code``. If the
        code stays as it is, nothing changes, and an instruction comment stays, too."""
        document, code = pending.request.document, pending.where.code
        if new_code == code and pending.renamed is None:
            return []
        base = document.offset(pending.region.start)
        if pending.renamed is not None:
            noted = pending.renamed.hunks
        else:
            instruction = pending.job.instruction
            noted = noted_hunks(code, new_code, instruction, document.language, document.text)
        return AskedRename(without_span(noted, *pending.comment)).moved(base)

    def prefill(self, request: EditRequest) -> None:
        """Compute the known beginning of the prompt while the user types an instruction. A withheld
        document is left alone: the user has not asked for an edit of it yet."""
        if request.withheld:
            return
        start, end = whole_lines(request.document, request.start, request.end)
        try:
            job = self._job(request, request.document.between(start, end), start, end)
        except EditRefused:
            return
        if not self._engine().refused:
            self._engine().prefill(job, self._client)
