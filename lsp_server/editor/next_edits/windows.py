"""The window of a document that a model of next edits is asked to rewrite, as it was when asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.tasks.next_edits.formats import NextEditFormat
from lsp_server.tasks.next_edits.replacements import changed_stretches
from lsp_server.text.documents.document import Document, Position

BYTES_PER_TOKEN = 3
"""An estimate that is rather too low, as Zed makes it."""
LONGEST_LINE = 600
"""Windows with a longer line are not asked for (Sweep's number)."""
MOST_CONTEXT_LINES = 60
FEWEST_LINES = 8
"""A window is made no smaller, however slow the machine is (Sweep's server asks for so many)."""
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class RecentEdit:
    """An edit as a prompt shows it: lines before and after, with unchanged ones around them."""

    path: str
    line: int
    """The first of its lines, 0-based."""
    old: tuple[str, ...]
    new: tuple[str, ...]
    is_suggested: bool = False
    """Whether a suggestion that the user took made it."""


@dataclass(frozen=True, slots=True)
class Window:
    """Lines of a document, read without line ends and byte order mark."""

    path: str
    language: str
    first: int
    """Its first line in the document, 0-based."""
    lines: tuple[str, ...]
    cursor: tuple[int, int] | None
    """Line in the window and column in code points; None where the cursor is elsewhere."""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """Lines above and below, the nearest ones."""
    original: tuple[str, ...] = ()
    """The window before the last edit, or before the one that is being typed."""
    edits: tuple[RecentEdit, ...] = ()
    """The latest last."""
    at_start: bool = False
    """Whether ``before`` begins with the file."""
    file: tuple[str, ...] = ()
    """A long stretch around it, where the format shows one."""
    ends_open: bool = False
    """Whether its last line is the document's and has no line end."""
    changes: tuple[tuple[str, str], ...] = field(default=())
    """Stretches of text that edits replaced, old and new: they are likely to change here, too."""

    @property
    def text(self) -> str:
        """The window as the model reads and writes it: every line ends with a line feed."""
        return "".join(f"{line}\n" for line in self.lines)


def window_at(
    document: Document,
    cursor: Position,
    fmt: NextEditFormat,
    path: str,
    recent: Sequence[RecordedEdit],
    path_of: dict[str, str],
    *,
    is_typing: bool,
    most_tokens: int = 0,
) -> Window | None:
    """Return the window around a place, None where no model is asked for it.

    recent: edits, the latest first; path_of: paths by the URI of their documents, those that are
    missing are left out; is_typing: the last edit may go on; most_tokens: of the latest edit that
    is shown, the window and its answer together, as far as the window can be made smaller; 0 for
    any number.
    """
    lines = [shown_line(line) for line in document.lines]
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    line_number = min(cursor.line, len(lines) - 1)
    is_last = recent and recent[0].document is document
    unfinished = recent[0] if is_last and (is_typing or not fmt.original_of_unfinished) else None
    readable = [edit for edit in recent if edit.document.uri in path_of]
    if fmt.original_of_unfinished and unfinished is not None:
        readable = [edit for edit in readable if edit is not unfinished]
    edits = [_shown_edit(edit, path_of[edit.document.uri], fmt) for edit in readable]
    edits = [edit for edit in edits if max(len(edit.old), len(edit.new)) <= fmt.most_edit_lines]
    edits = edits[: fmt.most_edits]
    first, end = _span(lines, line_number, fmt)
    if most_tokens:
        # Those before the latest one that is shown stand in the prompts of earlier edits, too.
        taken = sum(_size(line) for edit in edits[:1] for line in (*edit.old, *edit.new))
        remaining = most_tokens * BYTES_PER_TOKEN - taken
        first, end = _affordable(lines, line_number, first, end, remaining // fmt.window_copies)
    inside = lines[first:end]
    if not any(line.strip() for line in inside) or max(map(len, inside)) > LONGEST_LINE:
        return None
    budget = max(fmt.context_tokens, 1) * BYTES_PER_TOKEN
    above = _nearest(lines[max(first - MOST_CONTEXT_LINES, 0) : first][::-1], budget)[::-1]
    below = _nearest(lines[end : end + MOST_CONTEXT_LINES], budget)
    return Window(
        path=path,
        language=document.language,
        first=first,
        lines=tuple(inside),
        cursor=(line_number - first, min(cursor.column, len(lines[line_number]))),
        before=tuple(above) if fmt.context_tokens else (),
        after=tuple(below) if fmt.context_tokens else (),
        original=_original(inside, first, end, unfinished),
        edits=tuple(edits[::-1]),
        at_start=len(above) == first,
        file=tuple(_chunk(lines, line_number, fmt.file_lines)),
        ends_open=end == len(document.lines) and not document.lines[-1].endswith(("\r", "\n")),
        changes=tuple(replacements(recent)),
    )


def shown_line(line: str) -> str:
    """Return a line as the model reads it."""
    return line.rstrip("\r\n").removeprefix(_BOM)


def _span(lines: Sequence[str], line_number: int, fmt: NextEditFormat) -> tuple[int, int]:
    """Return the first line of the window and the one after its last."""
    if not fmt.window_tokens:
        below = line_number + fmt.lines_below + 1
        return max(line_number - fmt.lines_above, 0), min(below, len(lines))
    first, end = line_number, line_number + 1
    remaining = fmt.window_tokens * BYTES_PER_TOKEN - _size(lines[line_number])
    while remaining > 0 and (first > 0 or end < len(lines)):
        # By turns, so that the cursor stays in the middle.
        is_above = first > 0 and (line_number - first <= end - line_number - 1 or end == len(lines))
        line = lines[first - 1] if is_above else lines[end]
        remaining -= _size(line)
        if remaining < 0:
            break
        first, end = (first - 1, end) if is_above else (first, end + 1)
    return first, end


def _affordable(
    lines: Sequence[str], line_number: int, first: int, end: int, most: int
) -> tuple[int, int]:
    """Return the lines of a window nearest to the cursor that take at most ``most`` bytes: twice as
    many below it as above, where what comes next is looked for."""
    size = sum(map(_size, lines[first:end]))
    while size > most and end - first > FEWEST_LINES:
        is_above = 2 * (line_number - first) > end - line_number - 1
        size -= _size(lines[first] if is_above else lines[end - 1])
        first, end = (first + 1, end) if is_above else (first, end - 1)
    return first, end


def _chunk(lines: Sequence[str], line_number: int, most: int) -> Sequence[str]:
    """Return ``most`` lines around a line, with a beginning that lines nearby share."""
    if len(lines) <= most:
        return lines
    first = max(line_number - most // 2, 0) // max(most // 2, 1) * (most // 2)
    return lines[first : first + most]


def _size(line: str) -> int:
    return len(line.encode("utf-8", "surrogatepass")) + 1


def _nearest(lines: Sequence[str], budget: int) -> list[str]:
    """Return the first of some lines that take at most ``budget`` bytes."""
    sizes = accumulate(map(_size, lines))
    return [line for line, size in zip(lines, sizes, strict=True) if size <= budget]


def _original(
    inside: Sequence[str], first: int, end: int, edit: RecordedEdit | None
) -> tuple[str, ...]:
    """Return the lines of the window before an edit, where it is one of this document."""
    if edit is None or edit.line > end or edit.end < first:
        return tuple(inside)
    start, stop = max(edit.line - first, 0), max(min(edit.end, end) - first, 0)
    old = [shown_line(line) for line in edit.old]
    return (*inside[:start], *old, *inside[stop:])


def _shown_edit(edit: RecordedEdit, path: str, fmt: NextEditFormat) -> RecentEdit:
    lines = edit.document.lines
    above = [shown_line(line) for line in lines[max(edit.line - fmt.edit_context, 0) : edit.line]]
    below = [shown_line(line) for line in lines[edit.end : edit.end + fmt.edit_context]]
    if edit.end + fmt.edit_context >= len(lines) and below and not below[-1]:
        below.pop()
    old, new = ([shown_line(line) for line in side] for side in (edit.old, edit.new))
    before, after = (*above, *old, *below), (*above, *new, *below)
    return RecentEdit(path, edit.line - len(above), before, after, edit.origin == "suggested")


def replacements(recent: Sequence[RecordedEdit]) -> list[tuple[str, str]]:
    """Return what edits replaced inside a line, as words, old and new, the latest first."""
    lines_found: dict[str, str] = {}
    for edit in recent:
        for old, new in changed_stretches(edit.old_text, edit.new_text):
            lines_found.setdefault(old, new)
    return list(lines_found.items())[:8]
