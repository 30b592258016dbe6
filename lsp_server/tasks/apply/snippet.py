"""Reads a snippet: hunks of lines, with place holders between them for what was left out."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from lsp_server.tasks.apply.definitions import Definition, defined_name, indentation
from lsp_server.tasks.apply.line_marks import marked_lines
from lsp_server.tasks.apply.place_holders import ELLIPSIS, OF_CODE, is_bare, is_marked, said
from lsp_server.tasks.apply.wordings import LISTS

_SESSION = re.compile(r"\s*(?:>>>|In \[\d+\]:|\.{3}(?:\s|$))")
_STUBS = re.compile(LISTS["stubs"], re.IGNORECASE)
"""Instructions that ask for bodies of dots."""
_DOTTED_BODY = re.compile(rf"(?P<head>\s*(?:async\s+)?(?:def|class)\b.*:)\s*{ELLIPSIS}\s*(?:#.*)?$")
_NOTE = re.compile(r"(?:#|//|/\*|--|;;|%|<!--|\{#|\(\*)")
"""Where a comment behind code may begin."""
_ELIDED_BODY = re.compile(
    rf"\{{\s*(?:(?://|/\*|#|--|\(\*)\s*)?{ELLIPSIS}(?![\w.])[^{{}},]*\}}\s*[;,)]*$"
    rf"|[\[(]\s*/\*\s*{ELLIPSIS}[^*]*\*/\s*[\])]\s*[;,)]*$"
)
_DOTS = ("...", "…")


class Hunk(NamedTuple):
    """Lines of a snippet with no place holder among them. ``first``: their first, from 0."""

    first: int
    lines: tuple[str, ...]

    @property
    def end(self) -> int:
        """The line below the last."""
        return self.first + len(self.lines)


class SnippetHunks(NamedTuple):
    """Tell what a snippet shows. ``lines``: all of it, without comments that say that a line
    stays."""

    lines: tuple[str, ...]
    hunks: tuple[Hunk, ...]
    holders: tuple[int, ...]
    """The lines that stand for something left out."""
    partly: tuple[int, ...]
    """The lines that leave out a part of a line, such as a body between brackets."""
    open_top: bool
    """No place holder stands above the first hunk."""
    open_end: bool
    gone: frozenset[int] = frozenset()
    """The lines of the file that are to go: shown by ``-`` or by a comment that says so."""
    came: frozenset[int] = frozenset()
    """The lines with a ``+``, which are none of the file's."""
    beside: frozenset[int] = frozenset()
    """The lines beside those with signs, which have to be the file's."""

    @property
    def code(self) -> list[str]:
        """Return the lines, empty ones for place holders."""
        return ["" if n in self.holders else line for n, line in enumerate(self.lines)]

    def is_cut(self, definition: Definition) -> bool:
        """Return whether a place holder stands within a definition."""
        return any(definition.start < holder < definition.end for holder in self.holders)

    def of_hunk(self, number: int, lines: Collection[int]) -> frozenset[int]:
        """Return those of ``lines`` that a hunk has, from its first."""
        hunk = self.hunks[number]
        return frozenset(line - hunk.first for line in lines if hunk.first <= line < hunk.end)


def read_snippet(
    lines: Sequence[str], file: Sequence[str], language: str = "", instruction: str = ""
) -> SnippetHunks:
    """The hunks of a snippet. A line that the file has as often is no place holder, nor is what the
    instruction asks for."""
    known = Counter(map(str.strip, file))
    lines = _with_bodies_below(lines, file, known, instruction)
    lines, *marks = marked_lines(_without_notes(lines, known), file)
    gone = marks[0]
    holders: list[int] = []
    partly: list[int] = []
    asked = " ".join(instruction.split()).lower()
    for number, line in enumerate(lines):
        text = line.strip()
        if not text or number in gone or _is_of_session(lines, number):
            continue
        if known[text] > 0 and (text not in _DOTS or _follows(lines, number, file)):
            known[text] -= 1
            continue
        if len(said(line)) > len("...") and said(line).lower() in asked:
            continue
        is_dots = is_bare(line) and not _is_code(lines, number, file, known, language, instruction)
        if is_dots or (is_marked(line) and not _is_of_comment(lines, number, known)):
            holders.append(number)
        elif _left_out_within(text):
            partly.append(number)
    # Where all place holders have empty lines around them, these are none of the file's.
    sides = {number + step for number in holders for step in (-1, 1)}.intersection(
        range(len(lines))
    )
    is_spaced = len(sides) > 2 and not any(lines[n].strip() for n in sides.difference(holders))
    hunks: list[Hunk] = []
    first = 0
    for number in [*holders, len(lines)]:
        code = [n for n in range(first, number) if lines[n].strip()]
        if code:
            start, end = (code[0], code[-1] + 1) if is_spaced else (first, number)
            hunks.append(Hunk(start, tuple(lines[start:end])))
        first = number + 1
    return SnippetHunks(
        tuple(lines),
        tuple(hunks),
        tuple(holders),
        tuple(partly),
        bool(hunks) and not any(number < hunks[0].first for number in holders),
        bool(hunks) and not any(number > hunks[-1].first for number in holders),
        *marks,
    )


def _follows(lines: Sequence[str], number: int, file: Sequence[str]) -> bool:
    """Return whether a line of the file that is the same stands below the same line."""
    text, above = lines[number].strip(), lines[number - 1].strip() if number else ""
    pairs = itertools.pairwise(line.strip() for line in file)
    return any(pair == (above, text) for pair in pairs)


def _is_of_session(lines: Sequence[str], number: int) -> bool:
    """Return whether a line with dots goes on from the one above in a session with Python."""
    if not lines[number].lstrip().startswith("..."):
        return False
    above = itertools.takewhile(_SESSION.match, reversed(lines[:number]))
    return any(not line.lstrip().startswith("...") for line in above)


def _is_of_comment(lines: Sequence[str], number: int, known: Counter[str]) -> bool:
    """Return whether dots stand between two lines of a block comment that are new."""
    around = [
        line.strip() for line in (*lines[number - 1 : number], *lines[number + 1 : number + 2])
    ]
    is_inner = all(line.startswith("*") and not known[line] for line in around)
    return lines[number].split() in (["*", "..."], ["*", "…"]) and is_inner


def _left_out_within(text: str) -> bool:
    """Return whether a body is left out in the line that begins it."""
    if _ELIDED_BODY.search(text):
        return True
    sign = _NOTE.search(text)
    if sign is None or not sign.start():
        return False
    note = text[sign.start() :]
    is_dotted = re.search(ELLIPSIS, note) is not None and OF_CODE.search(note) is not None
    return is_dotted and is_marked(note)


def _is_code(
    lines: Sequence[str],
    number: int,
    file: Sequence[str],
    known: Collection[str],
    language: str,
    instruction: str,
) -> bool:
    """Tell whether dots on a line of their own are code: a body of Python, or one of values."""
    if lines[number].strip() not in _DOTS:
        return False
    before = next((line.rstrip() for line in reversed(lines[:number]) if line.strip()), "")
    if before.endswith((",", "(", "[", "{")):
        return before.strip() not in known
    if not language.startswith("python") or not before.endswith((":", '"""', "'''")):
        return False
    return _STUBS.search(instruction) is not None or _is_new(before, file)


def _is_new(line: str, file: Sequence[str]) -> bool:
    name = defined_name(line)
    return bool(name) and all(defined_name(one) != name for one in file if name in one)


def _with_bodies_below(
    lines: Sequence[str], file: Sequence[str], known: Collection[str], instruction: str
) -> Sequence[str]:
    """Return the lines with dots for a Python body on a line of its own, if the file has more."""
    if _STUBS.search(instruction):
        return lines
    made: list[str] = []
    for line in lines:
        dotted = _DOTTED_BODY.match(line)
        if dotted is None or line.strip() in known or _is_new(line, file):
            made.append(line)
        else:
            made += [dotted["head"], indentation(line) + "    ..."]
    return made


def _without_notes(lines: Sequence[str], known: Collection[str]) -> Sequence[str]:
    """The lines without comments that say of a line of the file that it was not changed."""
    made = []
    for line in lines:
        found = _NOTE.search(line) if line.strip() not in known else None
        code = line[: found.start()].rstrip() if found else ""
        is_note = (
            found
            and code.strip()
            and code.strip() in known
            and is_marked(line[found.start() :].strip())
        )
        made.append(code if is_note else line)
    return made
