"""Old texts that are replaced by new ones, as agents' edit tools do: where one stands as it is,
else where its lines stand but for white space or quotes, else where nearly all do.

Each is whole lines, unless the old and the new text are within one line.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lsp_server.tasks.apply.definitions import block_end, indentation
from lsp_server.tasks.apply.file_text import FileText
from lsp_server.tasks.apply.indents import IndentTable, indents_by_place
from lsp_server.tasks.apply.parsed_file import refuse_broken
from lsp_server.tasks.apply.placing import Lines, Span
from lsp_server.tasks.apply.refusals import (
    MORE_CONTEXT,
    AmbiguousSnippet,
    Merge,
    Reading,
    lines_range,
    shown,
)
from lsp_server.text.documents.document import with_line_feeds
from lsp_server.text.line_diff import opcodes

NEARLY = 0.7
"""The share of an old text's lines that a region has to have."""
ALIKE = 0.75
"""So alike are other lines at the same offsets."""
MOST_COMPARED, MOST_NEAREST = 4_000_000, 10_000
"""Pairs of lines that are compared for an old text that stands nowhere exactly."""
LONGEST_LINE = 2_000
_SIGNS = str.maketrans("‘’‚“”„–—−\u00a0", "'''\"\"\"--- ")
_SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    str.rstrip,
    str.strip,
    lambda line: " ".join(line.split()),
    lambda line: " ".join(line.translate(_SIGNS).split()),
)
"""How lines are compared, the strictest first."""
_PROSE = ("here is", "here's", "below is", "sure", "the following", "i ", "i'll", "this ")


@dataclass(frozen=True, slots=True)
class LineReplacement:
    """Lines that stand in a file, and the lines in their place. ``line``: where they are said to
    stand, from 1; with no old lines, the line to put the new ones below. ``scopes``: lines that
    stand above, the outermost first. ``is_within``: a text that may begin and end within lines."""

    old: Lines
    new: Lines
    line: int | None = None
    scopes: Lines = ()
    is_at_end: bool = False
    replaces_all: bool = False
    is_within: bool = False

    @property
    def changes(self) -> bool:
        """The new lines are others than the old ones."""
        return self.old != self.new


@dataclass(frozen=True, slots=True)
class TextChange:
    """A text of a file, which may begin and end within lines, and the one in its place: the fields
    of edit tools."""

    old_string: str = field(metadata={"also": ("old_text", "old_str")})
    new_string: str = field(metadata={"also": ("new_text", "new_str")})
    replace_all: bool = False

    @property
    def replacement(self) -> LineReplacement:
        """The change as lines."""
        texts = (with_line_feeds(text) for text in (self.old_string, self.new_string))
        old, new = (tuple(text.split("\n")) for text in texts)
        if old[-1] == "" and new[-1] == "":
            old, new = old[:-1], new[:-1]
        new = new if self.new_string else ()
        return LineReplacement(old, new, replaces_all=self.replace_all, is_within=True)


@dataclass(frozen=True, slots=True)
class FileUpdate:
    """A change of one file: a snippet, or replacements. ``path``: as the text names it; empty where
    it names none."""

    path: str
    replacements: tuple[LineReplacement, ...] = ()
    snippet: str = ""
    kind: str = "update"
    """``update``, ``add``, ``delete`` or ``move``."""

    @property
    def size(self) -> int:
        """The number of its characters."""
        halves = (line for each in self.replacements for line in (*each.old, *each.new))
        return len(self.snippet) + sum(map(len, halves))


@dataclass(slots=True)
class _Progress:
    """``shift``: how many lines the file has more than before; ``end``: of the last change."""

    shift: int = 0
    end: int = 0


def apply_replacements(
    original: str, replacements: Sequence[LineReplacement], language: str | None = None
) -> Merge:
    """Return the file with each replacement made, one after the other.

    Raises AmbiguousSnippet where an old text stands in several places or in none, and where the
    file parsed before and would not after.
    """
    if not any(replacement.changes for replacement in replacements):
        raise AmbiguousSnippet(
            "old and new text are the same, so nothing would change; send the new text"
        )
    if len(replacements) * (original.count("\n") + 1) > MOST_COMPARED:
        raise AmbiguousSnippet(
            f"there are {len(replacements)} changes for a file of this size; send a part of them"
        )
    text, progress = original, _Progress()
    for number, replacement in enumerate(replacements, start=1):
        if replacement.changes:
            text = _replaced(text, replacement, number, progress)
    if text == original:
        return Merge(text, "unchanged")
    refuse_broken(original, text, language)
    return Merge(text)


def _replaced(text: str, replacement: LineReplacement, number: int, progress: _Progress) -> str:
    file = FileText.of(text)
    if not any(line.strip() for line in replacement.old):
        return _put_in(file, replacement, number, progress)
    spans = spans_of(file.lines, replacement.old)
    if not spans and (within := _within(text, file, replacement, number)) is not None:
        return within
    spans = _chosen(file.lines, spans, replacement, progress)
    if len(spans) != 1 and not (spans and replacement.replaces_all):
        raise _refusal(file, spans, replacement, number)
    news: list[Lines] = []
    for start, end in spans:
        new = replaced_lines(file.lines[start:end], replacement.old, replacement.new)
        news.append(file.lines[start:end] if _stands_there(file.lines, (start, end), new) else new)
    progress.end = spans[-1][1] + len(news[-1]) - len(replacement.old)
    progress.shift += sum(map(len, news)) - sum(end - start for start, end in spans)
    return file.replaced(spans, news)


def _put_in(file: FileText, replacement: LineReplacement, number: int, progress: _Progress) -> str:
    """Return the file with new lines below the line that they name, or at its end."""
    if replacement.line is not None:
        line = replacement.line + progress.shift
    elif replacement.is_at_end and not replacement.scopes:
        line = len(file.lines)
    elif not any(line.strip() for line in file.lines):
        line = 0
    else:
        raise AmbiguousSnippet(
            f"the old text of change {number} is empty; send lines of the file around the new ones"
        )
    if not 0 <= line <= len(file.lines):
        raise AmbiguousSnippet(
            f"change {number} is to stand below line {line}, and the file has {len(file.lines)}; "
            f"{MORE_CONTEXT}"
        )
    progress.shift += len(replacement.new)
    return file.replaced([(line, line)], [replacement.new])


def spans_of(lines: Lines, old: Lines) -> list[Span]:
    """Return the lines at which an old text stands, by the strictest comparison that has any."""
    for texts in dict.fromkeys((old, _without_blank_ends(old))):
        for spelling in _SPELLINGS:
            old_texts = [spelling(line) for line in texts]
            file = [spelling(line) for line in lines]
            size, counts = len(old_texts), Counter(file)
            rare = min(range(size), key=lambda n: counts[old_texts[n]])
            if counts[old_texts[rare]] * size > MOST_COMPARED:
                raise AmbiguousSnippet(
                    f"the old text ({shown(old)}) stands all over the file; {MORE_CONTEXT}"
                )
            starts = [
                n - rare for n, line in enumerate(file) if n >= rare and line == old_texts[rare]
            ]
            if spans := [(n, n + size) for n in starts if file[n : n + size] == old_texts]:
                return spans
    return _nearly(lines, old)


def _without_blank_ends(lines: Lines) -> Lines:
    code = [number for number, line in enumerate(lines) if line.strip()]
    return lines[code[0] : code[-1] + 1]


def _nearly(lines: Lines, old: Lines) -> list[Span]:
    """Return the regions with the most lines that are the same, if those are nearly all and the
    rest are alike."""
    size = len(old)
    if len(lines) * size > MOST_COMPARED:
        return []
    texts, old_words = [line.split() for line in lines], [line.split() for line in old]
    code = [number for number, line in enumerate(old_words) if line]
    same: Counter[int] = Counter()
    for start in range(len(texts) - size + 1):
        same[start] = sum(texts[start + number] == old_words[number] for number in code)
    most = max(same.values(), default=0)
    if most < NEARLY * len(code):
        return []
    return [
        (start, start + size)
        for start, count in same.items()
        if count == most and all(_alike(texts[start + n], old_words[n]) for n in range(size))
    ]


def _alike(words: list[str], others: list[str]) -> bool:
    if words == others:
        return True
    text, other = " ".join(words), " ".join(others)
    if not text or not other or max(len(text), len(other)) > LONGEST_LINE:
        return False
    return difflib.SequenceMatcher(None, text, other, autojunk=False).ratio() >= ALIKE


def _chosen(
    lines: Lines, spans: list[Span], replacement: LineReplacement, progress: _Progress
) -> list[Span]:
    """Return the span that is meant by its line, its scopes or the order of changes; all of them
    where none of these tells."""
    if len(spans) < 2 or replacement.replaces_all:
        return spans
    if replacement.line is not None:
        line = replacement.line - 1 + progress.shift
        nearest = sorted(spans, key=lambda span: abs(span[0] - line))
        if abs(nearest[0][0] - line) < abs(nearest[1][0] - line):
            return nearest[:1]
    if scope := _scope(lines, replacement.scopes):
        spans = [span for span in spans if scope[0] <= span[0] < scope[1]] or spans
    if replacement.is_at_end and spans[-1][1] == len(lines):
        return spans[-1:]
    later = [span for span in spans if span[0] >= progress.end]
    return later if len(later) == 1 and progress.end else spans


def _scope(lines: Lines, scopes: Lines) -> Span | None:
    """Return the block that the innermost line of ``scopes`` opens, if they all stand there."""
    start, end = -1, len(lines)
    for scope in scopes:
        title = " ".join(scope.split())
        headers = [n for n in range(start + 1, end) if " ".join(lines[n].split()).startswith(title)]
        if not headers:
            return None
        start = headers[0]
        end = block_end(lines, start)
    return (start, end) if scopes else None


def _within(text: str, file: FileText, replacement: LineReplacement, number: int) -> str | None:
    """Return the text with a replacement within a line; None where that is not what is meant."""
    old, new = (file.end.join(lines) for lines in (replacement.old, replacement.new))
    if not replacement.is_within and len(replacement.old) + len(replacement.new) > 2:
        return None
    count = text.count(old)
    if count > 1 and not replacement.replaces_all:
        first = replacement.old[0]
        spans = [(n, n + 1) for n, line in enumerate(file.lines) if first in line]
        raise _refusal(file, spans, replacement, number)
    return text.replace(old, new) if count else None


def replaced_lines(region: Lines, old: Lines, new: Lines) -> Lines:
    """Return ``region``, where ``old`` stands, with the change from ``old`` to ``new``, indented as
    the region is; what the change leaves alone stays as it is. Raises AmbiguousSnippet."""
    if len(region) != len(old):
        old, new = _without_blank_ends(old), _without_blank_ends(new) if any(new) else new
    changes = opcodes(*([line.strip() for line in lines] for lines in (old, new)))
    same = [
        (old[start + n], new[new_start + n], region[start + n])
        for kind, start, end, new_start, _ in changes
        for n in range(end - start if kind == "equal" else 0)
    ]
    table = IndentTable.of_change(old, region, new, same)
    result: list[str] = []
    for kind, start, end, new_start, new_end in changes:
        came = new[new_start:new_end]
        if kind == "equal":
            for line, before, own in zip(came, old[start:end], region[start:end], strict=True):
                is_kept = indentation(line) == indentation(before) or not table.tells(line)
                result.append(own if is_kept else table.written(line))
        elif all(map(table.tells, came)):
            result += map(table.written, came)
        elif (indents := indents_by_place(region, (start, end), came)) is not None:
            result += [i + line.lstrip() for i, line in zip(indents, came, strict=True)]
        else:
            raise AmbiguousSnippet(
                f"the old text has lost its indentation, so it is not clear how deep {shown(came)} "
                "is to stand; send both texts indented as the file"
            )
    return tuple(result)


def _stands_there(lines: Lines, span: Span, new: Lines) -> bool:
    """Return whether the new lines stand around ``span`` already."""
    start, end = span
    size = len(new)
    if size <= end - start:
        return False
    new_lines = [line.rstrip() for line in new]
    offsets = range(max(0, end - size), min(start, len(lines) - size) + 1)
    return any([line.rstrip() for line in lines[n : n + size]] == new_lines for n in offsets)


def _refusal(
    file: FileText, spans: Sequence[Span], replacement: LineReplacement, number: int
) -> AmbiguousSnippet:
    text = "".join(f"{line}\n" for line in replacement.new)
    readings = tuple(Reading(start + 1, end, text) for start, end in spans)
    lines = shown(replacement.old)
    if spans:
        stands = f"stands at lines {lines_range(spans)}"
        return AmbiguousSnippet(
            f"the old text of change {number} ({lines}) {stands}; {MORE_CONTEXT}", readings
        )
    cause, remedy = _cause(file.lines, replacement)
    return AmbiguousSnippet(f"the old text of change {number} ({lines}) {cause}; {remedy}")


def _cause(lines: Lines, replacement: LineReplacement) -> tuple[str, str]:
    """Return why an old text stands nowhere, and what to do."""
    if replacement.new and len(spans := _exactly(lines, replacement.new)) == 1:
        return (
            f"stands nowhere in the file, and the new text stands at line {spans[0][0] + 1} "
            "already",
            "read the file again before another edit",
        )
    if len(replacement.old) == 1 and replacement.old[0].count("\\n") > 1:
        return "has line ends written as \\n", "send real line ends"
    texts = {line.strip() for line in lines}
    missing = next((line for line in replacement.old if line.strip() not in texts), "")
    if not missing:
        return (
            "stands nowhere in the file in one piece, though each of its lines does",
            "send lines that stand together",
        )
    if missing.lower().startswith(_PROSE) and missing.rstrip()[-1:] in ".:":
        return f"has a sentence that is no line of the file ({shown([missing])})", MORE_CONTEXT
    near = [line for line in texts if len(line) <= LONGEST_LINE][:MOST_NEAREST]
    nearest = difflib.get_close_matches(missing.strip()[:LONGEST_LINE], near, 1, 0.6)
    like = f"; the nearest line is {shown(nearest)}" if nearest else ""
    return f"stands nowhere in the file: it has no line {shown([missing])}{like}", MORE_CONTEXT


def _exactly(lines: Lines, old: Lines) -> list[Span]:
    size = len(old)
    return [(n, n + size) for n in range(len(lines) - size + 1) if lines[n : n + size] == old]
