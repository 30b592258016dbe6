"""Windows that a model of next edits is asked to rewrite, and what of the answers is shown."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lsp_server.editor.editing.region import TrackedRegion
from lsp_server.editor.next_edits.answers import AnsweredWindow, NoWindow, TakenBack, read_answer
from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.editor.next_edits.prompt_head import PromptHead
from lsp_server.editor.next_edits.prompts import (
    expected_answer,
    expected_rewrites,
    holds_marks,
    prompt_pieces,
)
from lsp_server.editor.next_edits.protected_code import refused_change
from lsp_server.editor.next_edits.removals import refused_removals
from lsp_server.editor.next_edits.rules import does_not_parse, refusal
from lsp_server.editor.next_edits.window_hunks import (
    all_hunks,
    first_hunks,
    in_document,
    logprob_of,
    starts_in_answer,
)
from lsp_server.editor.next_edits.windows import Window, shown_line
from lsp_server.shared.contract.jobs import EDIT, GenerateJob, JobResult, Span
from lsp_server.shared.errors import EngineFailed, EngineUnavailable, ModelUnavailable
from lsp_server.tasks.next_edits.formats import FORMATS, NextEditFormat
from lsp_server.text.documents.document import Document, Position
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit

if TYPE_CHECKING:
    from lsp_server.engine.client import EngineClient
    from lsp_server.shared.settings import NextEditSettings

THRESHOLDS = {"eager": 0.6, "balanced": 0.8, "quiet": 0.9, "off": 0.0}
"""Joint probabilities by the value of ``redraft.nextEdits.gate``. A calibrated model is right about
80 % of what it is sure of by 0.8."""
MOST_MISREAD = 3
"""So many answers one after another that are no windows: the model is not asked so again."""
ANSWER_S = 0.3
"""A window at the cursor is as large as the model reads and copies it in so many seconds, by what
was measured of this machine: with what it writes anew an answer is there 0.45 s after the key."""
LAST_ANSWERS = 8
FASTEST = 0.1
"""Share of its expected time that a prompt is taken to need at least: an estimate is no further
off."""
_MARGIN = 3
"""Lines at the borders of a window around which another one is asked for."""
ANSWER_FACTOR, ANSWER_TOKENS = 2, 128
"""An answer is at most so many times as long as its window, estimated, and so many tokens more."""


@dataclass(slots=True, eq=False)
class WindowRequest:
    """A window that the model is asked for, and the document that it is of."""

    window: Window
    format: NextEditFormat
    document: Document
    recent: Sequence[RecordedEdit]
    """Edits of all documents, the latest first."""
    workspace: str
    is_secret: bool = False
    region: TrackedRegion = field(init=False)
    version_text: str = field(init=False)
    """The document as it was asked for, its lines ending in line feeds."""

    def __post_init__(self) -> None:
        first, end = self.window.first, self.window.first + len(self.window.lines)
        last = min(end, len(self.document.lines)) - 1
        column = len(self.document.lines[last].rstrip("\r\n"))
        self.region = TrackedRegion(Position(first, 0), Position(last, column))
        self.version_text = "".join(f"{shown_line(line)}\n" for line in self.document.lines)

    @property
    def is_current(self) -> bool:
        """Return whether the document still has the window, wherever that has moved."""
        if self.region.touched or not self.document.is_open:
            return False
        first = self.region.start.line
        lines = self.document.lines[first : first + len(self.window.lines)]
        return tuple(map(shown_line, lines)) == self.window.lines

    def holds(self, document: Document, position: Position) -> bool:
        """Return whether it shows the model what is around a place, as it is now."""
        first, count = self.window.first, len(self.window.lines)
        is_near = first + _MARGIN <= position.line < first + count - _MARGIN
        is_near = is_near or self.window.cursor == (position.line - first, position.column)
        return self.document is document and is_near and self.is_current

    def refusal(self, hunk: TextEdit[int]) -> str:
        """Return why a change of the window is not shown, in words; empty where it is."""
        reason = refusal(self.window, hunk, self.recent, self.document)
        tree = SyntaxTree.of(self.version_text, self.document.language, self.document.uri)
        if reason or tree is None:
            return reason
        start, end = self.offset + hunk.start, self.offset + hunk.end
        end = min(end, len(tree.text))
        return refused_change(tree, TextEdit(min(start, end), end, hunk.text), self.recent)

    @property
    def offset(self) -> int:
        """Code points of the document before the window."""
        return sum(len(line) + 1 for line in self.version_text.split("\n")[: self.window.first])

    def job(self) -> GenerateJob:
        """Return what the engine is asked."""
        return GenerateJob(
            self.workspace,
            self.window.path,
            pieces=prompt_pieces(self.window, self.format),
            prediction=expected_answer(self.window, self.format),
            rewrites=expected_rewrites(self.window, self.format),
            likely=True,
            stop=list(self.format.stops),
            secret=self.is_secret,
            max_tokens=ANSWER_FACTOR * len(self.window.text.encode()) // 3 + ANSWER_TOKENS,
        )


ConfidentChanges = list[tuple[TextEdit[Position], float]]
"""Changes that are shown, and the joint probability of each."""


class NextEditModel:
    """Asks the model of next edits of one client. ``engine`` gives it, None where there is none."""

    def __init__(
        self,
        client: str,
        settings: Callable[[], NextEditSettings],
        engine: Callable[[], EngineClient | None],
    ) -> None:
        self._client = client
        self._settings = settings
        self._engine = engine
        self._head = PromptHead(client)
        self._misread: dict[tuple[str, str], int] = {}
        """Answers one after another that were no windows, by model and format."""
        self.reason = ""
        """Why the last answer had nothing."""
        self.results: deque[JobResult] = deque(maxlen=LAST_ANSWERS)
        """Of the last answers."""

    @property
    def format(self) -> NextEditFormat | None:
        """The format that the model is asked in; None where it is not asked."""
        engine = self._engine()
        if engine is None or engine.status.state == "failed":
            return None
        name = self._wanted(engine)
        if name not in engine.status.next_edit_formats:
            return None
        return None if self._is_misread(engine.status.model, name) else FORMATS[name]

    def _wanted(self, engine: EngineClient) -> str:
        """Return the name of the format by the settings; empty where the model is not asked."""
        name = self._settings().format
        if name == "auto":
            name = engine.status.next_edit_format
            return name if name and FORMATS[name].is_shown else ""
        return "" if name == "none" else name

    @property
    def affordable_tokens(self) -> int:
        """Tokens of an edit, a window and its answer that are computed while a user waits, by what
        the engine measured and how much longer the last prompts took, beside what else is computed;
        0 where it is not known yet."""
        engine = self._engine()
        if engine is None:
            return 0
        length = engine.status.prompt_length
        expected_s = sum(length.seconds_of(last.prompt_rows) for last in self.results)
        needed_s = sum(last.prefill_seconds for last in self.results)
        slower = needed_s / expected_s if expected_s else 1.0
        return length.tokens(ANSWER_S / max(slower, FASTEST))

    @property
    def trouble(self) -> str:
        """Return what is wrong with the model or the format; empty for nothing."""
        engine = self._engine()
        if engine is None or engine.status.state != "ready" or not (name := self._wanted(engine)):
            return ""
        if name not in engine.status.next_edit_formats:
            return f"the model's vocabulary lacks the tokens of the format {name}"
        if self._is_misread(engine.status.model, name):
            return (
                f"the model does not answer in the format {name}; choose another with "
                "redraft.nextEdits.format"
            )
        return ""

    def _is_misread(self, model: str, fmt: str) -> bool:
        return self._misread.get((model, fmt), 0) >= MOST_MISREAD

    @property
    def threshold(self) -> float:
        """The joint probability below which nothing is shown."""
        return THRESHOLDS[self._settings().gate]

    async def ask(
        self, request: WindowRequest, tell: Callable[[ConfidentChanges], None], priority: int = EDIT
    ) -> None:
        """Ask for a window; ``tell`` is told the first change once the answer is back in the
        window, and all of them at its end. Leaving cancels it."""
        engine = self._engine()
        if engine is None:
            return
        if holds_marks(request.window, request.format):
            self.reason = "the text holds marks of the model's format"
            return
        spans: list[Span] = []
        job, has_first = request.job(), False

        def on_spans(new: list[Span]) -> None:
            nonlocal has_first
            spans.extend(new)
            if not has_first and (confident := self._first(request, spans)) is not None:
                has_first = True
                tell(confident)

        await self._head.computed(engine, job, priority)
        call = engine.ask(job, self._client, on_spans, priority)
        try:
            result: JobResult = await call.result()
        except (EngineFailed, EngineUnavailable, ModelUnavailable) as error:
            self.reason = str(error)
            return
        self.results.append(result)
        tell(self._all(request, spans, result, engine.status.model))

    def _first(self, request: WindowRequest, spans: Sequence[Span]) -> ConfidentChanges | None:
        """Return the changes up to where the answer is back in the window; None until it is."""
        text = "".join(span.text for span in spans)
        try:
            answered = read_answer(text, request.window, request.format, is_whole=False)
        except NoWindow:
            return None
        hunks = first_hunks(request.window, answered)
        return self._confident(request, hunks, answered, spans) if hunks else None

    def _all(
        self, request: WindowRequest, spans: Sequence[Span], result: JobResult, model: str
    ) -> ConfidentChanges:
        if result.stopped_by not in ("end", "stop"):
            self.reason = f"the answer was not finished ({result.stopped_by})"
            return []
        key = model, request.format.name
        try:
            answered = read_answer(result.text, request.window, request.format, is_whole=True)
        except NoWindow as error:
            if not isinstance(error, TakenBack):
                self._misread[key] = self._misread.get(key, 0) + 1
            self.reason = str(error)
            return []
        self._misread[key] = 0
        hunks = all_hunks(request.window, answered)
        if not hunks:
            self.reason = "the model leaves the text as it is"
        return self._confident(request, hunks, answered, spans)

    def _confident(
        self,
        request: WindowRequest,
        hunks: Sequence[TextEdit[int]],
        answered: AnsweredWindow,
        spans: Sequence[Span],
    ) -> ConfidentChanges:
        """Return those of the changes that are shown: from the first on as long as the model is
        sure of all of them together."""
        if not request.is_current:
            self.reason = "the text has changed"
            return []
        confident: list[tuple[TextEdit[int], float]] = []
        logprob = 0.0
        for times, start in zip(hunks, starts_in_answer(hunks), strict=True):
            reason = request.refusal(times)
            logprob += logprob_of(start, times, answered, spans)
            likely = math.exp(logprob)
            if not reason and likely < self.threshold:
                reason = f"the model is not sure of it ({likely:.2f} of {self.threshold:g})"
            if reason:
                self.reason = reason
            else:
                confident.append((times, likely))
        window, recent, document = request.window, request.recent, request.document
        sure = [hunk for hunk, _ in confident]
        for removal, self.reason in refused_removals(window, sure, recent, document):
            confident = [times for times in confident if times[0] is not removal]
        sure = [hunk for hunk, _ in confident]
        problem = sure and does_not_parse(window, sure, request.version_text, request.offset)
        if problem:
            self.reason = f"the text would not parse ({problem})"
            return []
        first = request.region.start.line
        return [(in_document(window, hunk, document, first), likely) for hunk, likely in confident]
