"""Puts a model's answer into the original text: what it leaves unchanged is the original's,
character for character; changed lines keep what was not shown of those they replace."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.editing.shown_text import ShownLine, ShownText
from lsp_server.tasks.indentation import ABOUT_INDENTS
from lsp_server.text.documents.document import with_line_feeds
from lsp_server.text.line_diff import opcodes
from repo_index.common_ends import common_ends

NEAR = 8
"""Lines among which the one is looked for that a changed line replaces."""
ALIKE = 0.5
"""Part of the words that a line has from the one that it replaces."""
SPOILT = "the model lost characters that its vocabulary does not have; select lines without them"


@dataclass(frozen=True, slots=True)
class Written:
    """A line of the result. ``source``: the original line that it is, or replaces; -1 without."""

    text: str
    end: str
    source: int = -1
    is_original: bool = False


def spliced(shown_text: ShownText, answer: str, default_end: str = "\n", tabs: bool = False) -> str:
    """Return the original text after the edit that ``answer`` makes of the text that was shown.

    default_end: the line end where no line tells one. tabs: the document around is indented by
    tabs. Raises EditRefused where the answer spoils a stand-in.
    """
    return _Splice(shown_text, answer, default_end, tabs).text()


class _Splice:
    def __init__(self, shown_text: ShownText, answer: str, default_end: str, tabs: bool) -> None:
        self._shown, self._lines = shown_text, shown_text.lines
        self._default_end = default_end
        self._answer = [line.rstrip(" \t") for line in with_line_feeds(answer).split("\n")]
        indents = [line.indent for line in self._lines if line.indent and line.pieces]
        self._tabs = any("\t" in indent for indent in indents) if indents else tabs
        self._step = _step_of(self._answer)
        self._keeps_indents = ABOUT_INDENTS.search(shown_text.instruction) is None

    def text(self) -> str:
        written: list[Written] = []
        for kind, first, last, new_first, new_last in self._stretches():
            if kind == "equal":
                written += [self._original(number) for number in range(first, last)]
            else:
                written += self._changed(first, last, new_first, new_last)
        written[-1] = replace(written[-1], end=self._lines[-1].end)
        return self._shown.bom + "".join(line.text + line.end for line in _apart(written))

    def _stretches(self) -> list[tuple[str, int, int, int, int]]:
        """Yield equal and changed stretches, with as many equal lines as possible at both ends."""
        old, new = [line.shown for line in self._lines], self._answer
        head, tail = common_ends(old, new)
        old_end, new_end = len(old) - tail, len(new) - tail
        between = [
            (kind, first + head, last + head, new_first + head, new_last + head)
            for kind, first, last, new_first, new_last in opcodes(
                old[head:old_end], new[head:new_end]
            )
        ]
        return [
            ("equal", 0, head, 0, head),
            *between,
            ("equal", old_end, len(old), new_end, len(new)),
        ]

    def _original(self, number: int) -> Written:
        line = self._lines[number]
        return Written(line.original, line.end or self._end_near(number), number, is_original=True)

    def _changed(self, first: int, last: int, new_first: int, new_last: int) -> list[Written]:
        """New lines in place of the lines ``first`` to ``last``."""
        cut = [self._shown.cut(line.lstrip(" \t")) for line in self._answer[new_first:new_last]]
        self._refuse_spoilt(self._lines[first:last], cut)
        sources = self._sources(range(first, last), cut)
        above = first - 1
        written = []
        for number, (pieces, source) in enumerate(zip(cut, sources, strict=True)):
            line = self._answer[new_first + number]
            indent = line[: len(line) - len(line.lstrip(" \t"))]
            above = source if source >= 0 else above
            written.append(self._line(indent, pieces, source, above))
        return written

    def _line(self, indent: str, pieces: list[str], source: int, above: int) -> Written:
        end = self._end_near(source if source >= 0 else above)
        if not pieces:
            return Written("", end, source)
        old = self._lines[source] if source >= 0 else None
        if old is None or not old.pieces:
            words = "".join(map(self._meaning, pieces))
            return Written(self._indented(indent, above) + words, end, source)
        same = old.indent == indent
        before = old.head + (old.indent if same else self._indented(indent, source))
        return Written(before + self._words(old, pieces) + old.tail, end, source)

    def _words(self, old: ShownLine, pieces: list[str]) -> str:
        """A changed line's words, from the original where they are unchanged."""
        words: list[str] = []
        old_words = [piece.shown for piece in old.pieces]
        for kind, first, last, new_first, new_last in opcodes(old_words, pieces):
            if kind == "equal":
                words += [piece.original for piece in old.pieces[first:last]]
            else:
                words += map(self._meaning, pieces[new_first:new_last])
        return "".join(words)

    def _meaning(self, piece: str) -> str:
        return self._shown.meanings.get(piece, piece)

    def _sources(self, old: range, cut: list[list[str]]) -> list[int]:
        """Of each new line the number of the line that it replaces, -1 for none."""
        if len(old) == len(cut):
            return list(old)
        sources: list[int] = []
        free = old.start
        for number, pieces in enumerate(cut):
            near = range(free, min(free + NEAR, old.stop))
            alike = [(_likeness(self._lines[each], pieces), -each) for each in near if pieces]
            best, best_line = max(alike, default=(0.0, 0))
            is_last = number == len(cut) - 1 and not sources
            if best > ALIKE or (is_last and best > 0):
                free = 1 - best_line
                sources.append(-best_line)
            else:
                sources.append(-1)
        return sources

    def _end_near(self, number: int) -> str:
        """Return the line end for a line that is put at line ``number`` or below it."""
        near = (n for n in (number, number - 1, 0) if 0 <= n < len(self._lines))
        return next((end for n in near if (end := self._lines[n].end)), self._default_end)

    def _indented(self, indent: str, above: int) -> str:
        """Return the indentation of a new line, as the lines around have it."""
        if not self._keeps_indents:
            return indent
        near = sorted(range(len(self._lines)), key=lambda n: (abs(n - above), n))
        near_lines = [line for line in (self._lines[n] for n in near) if line.pieces]
        if any(line.indent == indent for line in near_lines):
            return indent
        outer = max(
            (line for line in near_lines if indent.startswith(line.indent)),
            key=lambda line: len(line.indent),
            default=None,
        )
        outer_indent = outer.indent if outer else ""
        rest = indent[len(outer_indent) :]
        return outer_indent + self._in_style(rest)

    def _in_style(self, blanks: str) -> str:
        if not self._tabs or "\t" in blanks:
            return blanks
        tabs, rest = divmod(len(blanks), self._step)
        return "\t" * tabs + " " * rest

    def _refuse_spoilt(self, old: list[ShownLine], cut: list[list[str]]) -> None:
        """Raise EditRefused for stand-ins that the model invented, lost or wrote otherwise."""
        shown_text, meanings = self._shown, self._shown.meanings
        if not meanings:
            return
        # The instruction may ask for another name in place of one that it names.
        required = meanings.keys() - set(shown_text.cut(shown_text.instruction))
        before = [piece.shown for line in old for piece in line.pieces]
        after = [piece for pieces in cut for piece in pieces]
        for piece in after:
            if shown_text.looks_like_stand_in(piece) and piece not in meanings:
                raise EditRefused(SPOILT)
        for kind, first, last, _, _ in opcodes(before, after):
            gone = [piece for piece in before[first:last] if piece.strip()]
            is_alone = kind in ("delete", "replace") and all(piece in required for piece in gone)
            if is_alone and any(after.count(piece) < before.count(piece) for piece in gone):
                raise EditRefused(SPOILT)


def _likeness(line: ShownLine, pieces: list[str]) -> float:
    """Return the equal share of both, from 0 to 1; 0 if it cannot exceed ALIKE."""
    texts = [each.shown for each in line.pieces]
    both = len(texts) + len(pieces)
    if not both or 2 * min(len(texts), len(pieces)) <= ALIKE * both:
        return 0.0 if both else 1.0
    equal = (last - first for kind, first, last, _, _ in opcodes(texts, pieces) if kind == "equal")
    return 2 * sum(equal) / both


def _apart(written: list[Written]) -> list[Written]:
    """Return the lines, with no lone carriage return before an empty line that ends in a newline:
    the two would become one line end."""
    lines = list(written)
    for number, (line, below) in enumerate(itertools.pairwise(written)):
        adjacent = line.is_original and below.is_original and below.source == line.source + 1
        if line.end == "\r" and not adjacent and (below.text + below.end).startswith("\n"):
            lines[number] = replace(line, end="\n")
    return lines


def _step_of(lines: list[str]) -> int:
    """Return the number of spaces of one indentation step in the model's lines."""
    widths = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
    return 4 if all(width % 4 == 0 for width in widths) else 2
