"""Finds instructions in comments, and the code that each is about."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from lsp_server.editor.editing.wordings import TABLE, compiled
from lsp_server.tasks.apply.definitions import depth
from lsp_server.text.documents.document import split_lines
from lsp_server.text.text_edit import TextEdit

INSTRUCTION_MARK = "redraft:"
"""In any case of its letters."""
_COMMENT_WITH_INSTRUCTION = re.compile(
    r"""(?:(?:\#|//+!?|--\[\[|--|;|/\*+|<!--|%|\(\*|\{-|\{\{!)+|^\s*(?:["'!]|::|rem\b|dnl\b))\s*
    redraft:\s*(.+?)\s*
    (?:\*/\s*\}?|-->|--%>|%>|\*\)|-\}|\#\}|\#>|(?:--)?\}\}|\]\])?\s*$""",
    re.IGNORECASE | re.VERBOSE,
)
"""A comment of any of the usual languages. Marks that also stand for other things begin a line."""
_OPENING = "{[<%"
"""Characters before a comment's mark that belong to it, as in ``{/* … */}``."""
_COMMENT = re.compile(r"\s*(?:#(?!\w)|//|--|;|/\*|<!--|%|\(\*|\{-|\*\s)")
_GOES_ON = compiled(TABLE["goes on"])
"""Beginnings of lines that belong to the statement above, although indented no deeper."""
LONGEST_LINE = 20_000
"""Characters. Longer lines are not searched for instructions."""


@dataclass(frozen=True, slots=True)
class InstructionComment:
    """An instruction in a comment at the end of a line."""

    instruction: str
    start: int
    """Characters of the line before the comment and the blanks in front of it; 0 where the comment
    has a line of its own."""

    @property
    def alone(self) -> bool:
        """True if the comment has a line of its own."""
        return self.start == 0


def instruction_comment(line: str) -> InstructionComment | None:
    """Return the instruction in the comment that ends ``line``, None without one."""
    is_long = len(line) > LONGEST_LINE
    match = None if is_long else _COMMENT_WITH_INSTRUCTION.search(line.rstrip("\r\n"))
    if match is None:
        return None
    code = line[: match.start()].rstrip()
    return InstructionComment(match.group(1), len(code) if code.strip(_OPENING + " \t") else 0)


def comment_span(text: str) -> tuple[int, int]:
    """Return start and end of the instruction comment on the first line of ``text``, with the line
    end of a line of its own, or else the blanks before it. Empty without one."""
    line = split_lines(text)[0]
    comment = instruction_comment(line)
    if comment is None:
        return 0, 0
    return (0, len(line)) if comment.alone else (comment.start, len(line.rstrip("\r\n")))


def without_span(hunks: list[TextEdit[int]], start: int, end: int) -> list[TextEdit[int]]:
    """Turn ``hunks`` of a text that lacks the characters ``start`` to ``end`` into hunks of the
    whole text that delete those characters."""
    if start == end:
        return hunks
    cut = end - start
    before = [hunk for hunk in hunks if hunk.end < start]
    touching = [hunk for hunk in hunks if hunk.start <= start <= hunk.end]
    after = [replace(hunk, start=hunk.start + cut, end=hunk.end + cut)
             for hunk in hunks if hunk.start > start]  # fmt: skip
    first = min([start, *(hunk.start for hunk in touching)])
    last = max([start, *(hunk.end for hunk in touching)])
    text = "".join(hunk.text for hunk in touching)
    note = "".join(hunk.note for hunk in touching[:1])
    return [*before, TextEdit(first, last + cut, text, note), *after]


def block_of(lines: list[str], number: int, comment: InstructionComment) -> int | None:
    """Return the last line of the statement that the comment on line ``number`` belongs to: the one
    before it on its line, else the one below it, with the lines indented under it. None without a
    statement."""
    below = range(number + comment.alone, len(lines))
    first = next((index for index in below if lines[index].strip()), None)
    if first is None:
        return None
    least, last = depth(lines[first]), first
    for index in range(first + 1, len(lines)):
        line = lines[index]
        if not line.strip():
            continue
        if depth(line) < least or (depth(line) == least and not _goes_on(lines[last], line)):
            break
        last = index
    return last


def _goes_on(before: str, line: str) -> bool:
    """Return True if ``line``, which is as deep as its statement, belongs to it."""
    above = before.lstrip()
    if depth(before) == depth(line) and (above.startswith("@") or _COMMENT.match(above)):
        return True
    return _GOES_ON.match(line.lstrip()) is not None
