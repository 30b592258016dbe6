"""Has a model that was made to merge put a snippet into its file where the merge is refused. It
chooses one of the readings; where there is none, its text counts if it has all lines of the snippet
and no line of its own.

Other models are not asked: what the default model made of refused snippets was never right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from lsp_server.shared.contract.jobs import GenerateJob, JobResult
from lsp_server.tasks.apply.file_text import FileText, lines_of
from lsp_server.tasks.apply.formats import apply_format, apply_job, file_of_answer
from lsp_server.tasks.apply.parsed_file import ParsedFile
from lsp_server.tasks.apply.placing import Lines, Span
from lsp_server.tasks.apply.refusals import AmbiguousSnippet
from lsp_server.tasks.apply.snippet import read_snippet
from lsp_server.tasks.task import CUT
from lsp_server.text.line_diff import opcodes
from repo_index.common_ends import common_ends


@dataclass(frozen=True)
class ModelMerge:
    """A snippet that was refused. ``instruction``: what it is to do, in words; may be empty."""

    code: str
    snippet: str
    refused: AmbiguousSnippet
    instruction: str = ""
    language: str | None = None

    def job(self, model: str) -> GenerateJob | None:
        """Return what a model of a name is asked; None where it was not made to merge."""
        form = apply_format(model)
        if form is None:
            return None
        return apply_job(form, self.code, self.snippet, self.instruction, self.language or "")

    def merged(self, model: str, result: JobResult) -> str | None:
        """The file by an answer to ``job``; None where that does not count."""
        if result.stopped_by in CUT:
            return None
        form = apply_format(model)
        text = file_of_answer(form, result.text, self.code) if form else None
        return None if text is None else self.accepted(lines_of(text))

    def accepted(self, lines: Sequence[str]) -> str | None:
        """The file with the lines that a model has it be; None where these are no reading."""
        new, old = tuple(lines), self._file.lines
        head, tail = common_ends([*old], [*new])
        span, part = (head, len(old) - tail), new[head : len(new) - tail]
        choices = self.refused.choices
        if new not in choices if choices else not self._is_reading(new, span, part):
            return None
        return self._file.replaced([span], [part])

    def _is_reading(self, new: Lines, span: Span, part: Lines) -> bool:
        """Return True if new lines of the file have all hunks of the snippet, in order, no line of
        their own, no change elsewhere, and still parse."""
        old = self._file.lines
        hunks = list(_hunks(lines_of(self.snippet), old))
        if not hunks or not set(new) <= {"", *old, *chain.from_iterable(hunks)}:
            return False
        spans: list[Span] = []
        for hunk in hunks:
            first = spans[-1][1] if spans else 0
            starts = range(first, len(new) - len(hunk) + 1)
            at = next((n for n in starts if new[n : n + len(hunk)] == hunk), None)
            if at is None:
                return False
            spans.append((at, at + len(hunk)))
        # What goes has to be between two lines of a hunk that stay.
        changes = [
            (start - (kind != "insert"), end + (kind != "insert"))
            for kind, *_, start, end in opcodes(old, new)
            if kind != "equal"
        ]
        return all(
            any(first <= start and end <= last for first, last in spans) for start, end in changes
        ) and not ParsedFile.of(old, self.language).breaks((span,), (part,))

    @cached_property
    def _file(self) -> FileText:
        return FileText.of(self.code)


def _hunks(snippet: Sequence[str], code: Lines) -> Iterator[Lines]:
    """The lines of each hunk, without blank ones around them."""
    for hunk in read_snippet(snippet, code).hunks:
        shown = [n for n, line in enumerate(hunk.lines) if line.strip()]
        yield hunk.lines[shown[0] : shown[-1] + 1]
