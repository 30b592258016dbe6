"""Finds instructions in comments, and the code that each is about."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

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
"""What is in front of a comment's mark and belongs to it, as in ``{/* … */}``."""
_COMMENT = re.compile(r"\s*(?:#(?!\w)|//|--|;|/\*|<!--|%|\(\*|\{-|\*\s)")
_GOES_ON = re.compile(
    r"[)\]}{]|(?:else|elif|elsif|elseif|except|finally|catch|rescue|ensure)\b|"
    r"(?:then|do|begin)\s*$|"
    r"(?:end\w*|fi|done|esac|until)\b(?!\s*(?:[-+*/%&|^:]?=|[.(\[]))",
    re.IGNORECASE,
)
"""How a line begins that belongs to the statement above, although it is indented no deeper."""
LONGEST_LINE = 20_000
"""Characters. A longer line is no place where a person writes an instruction."""


@dataclass(frozen=True, slots=True)
class InstructionComment:
    """An instruction in a comment at the end of a line."""

    instruction: str
    start: int
    """Characters of the line before the comment and the blanks in front of it; 0 where the comment
    has a line of its own."""

    @property
    def alone(self) -> bool:
        """Whether the comment has a line of its own."""
        return self.start == 0


def instruction_comment(line: str) -> InstructionComment | None:
    """The instruction in a line, if it ends in a comment that holds one."""
    if len(line) > LONGEST_LINE:
        return None
    found = _COMMENT_WITH_INSTRUCTION.search(line.rstrip("\r\n"))
    if found is None:
        return None
    code = line[: found.start()].rstrip()
    return InstructionComment(found.group(1), len(code) if code.strip(_OPENING + " \t") else 0)


def comment_span(text: str) -> tuple[int, int]:
    """Characters of the instruction comment on the first line of ``text``, with what goes away with
    it: the end of a line of its own, else the blanks in front of it. Empty where there is none."""
    line = split_lines(text)[0]
    comment = instruction_comment(line)
    if comment is None:
        return 0, 0
    return (0, len(line)) if comment.alone else (comment.start, len(line.rstrip("\r\n")))


def without_span(hunks: list[TextEdit[int]], start: int, end: int) -> list[TextEdit[int]]:
    """Changes of a text without its characters ``start`` to ``end``, as changes of the whole text,
    which take those characters away."""
    if start == end:
        return hunks
    cut = end - start
    before = [one for one in hunks if one.end < start]
    at = [one for one in hunks if one.start <= start <= one.end]
    after = [replace(one, start=one.start + cut, end=one.end + cut)
             for one in hunks if one.start > start]  # fmt: skip
    first, last = min([start, *(one.start for one in at)]), max([start, *(one.end for one in at)])
    text, note = "".join(one.text for one in at), "".join(one.note for one in at[:1])
    return [*before, TextEdit(first, last + cut, text, note), *after]


def block_of(lines: list[str], number: int, comment: InstructionComment) -> int | None:
    """The last line of the statement that the comment on line ``number`` is about.

    That is the statement that it follows, else the one below it, with everything indented
    under it. None where there is none.
    """
    first = number
    if comment.alone:
        first += 1
        while first < len(lines) and not lines[first].strip():
            first += 1
        if first == len(lines):
            return None
    depth, last = _depth(lines[first]), first
    for place in range(first + 1, len(lines)):
        line = lines[place]
        if not line.strip():
            continue
        if _depth(line) < depth or (_depth(line) == depth and not _goes_on(lines[last], line)):
            break
        last = place
    return last


def _goes_on(before: str, line: str) -> bool:
    """Whether a line at a statement's own depth belongs to it."""
    above = before.lstrip()
    if _depth(before) == _depth(line) and (above.startswith("@") or _COMMENT.match(above)):
        return True
    return _GOES_ON.match(line.lstrip()) is not None


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
