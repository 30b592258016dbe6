"""Blocks of search and replace, as Aider, Cline and Roo Code ask models for them.

Sources: Aider's ``editblock_coder.py``, Cline's ``diff/constructNewFileContent`` and Roo Code's
``multi-search-replace``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lsp_server.tasks.apply.place_holders import is_bare, place_holder
from lsp_server.tasks.apply.refusals import AmbiguousSnippet, shown
from lsp_server.tasks.apply.replacements import FileUpdate, LineReplacement
from lsp_server.tasks.apply.wrapping import FENCE, heading_path

_FLAGS = re.MULTILINE | re.IGNORECASE
MARKS = re.compile(r"^[ \t]*(?:<{5,}|-{5,})[ \t]*(?:SEARCH|ORIGINAL)\b", _FLAGS)
"""The line that opens a block."""
_DIVIDER = re.compile(r"[ \t]*={5,}[ \t]*$")
_CLOSES = re.compile(r"[ \t]*(?:>{5,}|\+{5,})[ \t]*(?:REPLACE|UPDATED)?\b.*$", re.IGNORECASE)
_START_LINE = re.compile(r"[ \t]*:(?P<key>start_line|end_line):[ \t]*(?P<line>\d+)[ \t]*$")
_RULE = re.compile(r"[ \t]*-{5,}[ \t]*$")
_ESCAPED = re.compile(r"^\\(?=[<=>+-]{5,})")


def read(text: str) -> list[FileUpdate]:
    """Return the blocks of ``text``, each for the file that is named above it, or above the last.
    Raises AmbiguousSnippet where a block is not closed, or has a mark twice."""
    updates: list[FileUpdate] = []
    lines = text.split("\n")
    path, number, block = "", 0, 0
    while number < len(lines):
        if not MARKS.match(lines[number]):
            path = path if FENCE.match(lines[number]) else heading_path(lines[number]) or path
            number += 1
            continue
        block += 1
        end, divider = _block_end(lines, number, block)
        old, new = lines[number + 1 : divider], lines[divider + 1 : end]
        updates.append(FileUpdate(path, tuple(_replacements(old, new, block))))
        number = end + 1
    return updates


def _block_end(lines: Sequence[str], start: int, block: int) -> tuple[int, int]:
    """Return the lines that close and that divide the block that ``start`` opens."""
    divider = 0
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if MARKS.match(line) or (divider and _DIVIDER.match(line)):
            raise AmbiguousSnippet(
                f"block {block} has {line.strip()} before it is closed (line {number + 1}); send "
                "each block with one SEARCH, one ======= and one REPLACE"
            )
        if _CLOSES.match(line):
            if not divider:
                break
            return number, divider
        if _DIVIDER.match(line):
            divider = number
    raise AmbiguousSnippet(
        f"block {block} (line {start + 1}) is not closed; end it with ======= and >>>>>>> REPLACE"
    )


def _replacements(old: list[str], new: list[str], block: int) -> Iterator[LineReplacement]:
    line = None
    while old and (given := _START_LINE.match(old[0])):
        line = int(given["line"]) if given["key"] == "start_line" else line
        old = old[1:]
    if old and line is not None and _RULE.match(old[0]):
        old = old[1:]
    old = [_ESCAPED.sub("", text) for text in old]
    new = [_ESCAPED.sub("", text) for text in new]
    olds, news = _divided(old, new), _divided(new, old)
    if len(olds) != len(news):
        raise AmbiguousSnippet(
            f"block {block} has ... in one half alone; write all lines of both halves"
        )
    literal = {text.strip() for text in old}
    for text in new:
        if len(olds) == 1 and place_holder(text) and text.strip() not in literal:
            raise AmbiguousSnippet(
                f"block {block} has a place holder in REPLACE ({shown([text])}); write the lines "
                "that it stands for"
            )
    for before, after in zip(olds, news, strict=True):
        if len(olds) == 1 or before != after:
            yield LineReplacement(tuple(before), tuple(after), line)


def _divided(lines: list[str], others: list[str]) -> list[list[str]]:
    """Return ``lines`` between lines of dots, if ``others`` have such lines, too."""
    pieces: list[list[str]] = [[]]
    has_dots = all(any(_is_dots(line) for line in half) for half in (lines, others))
    for line in lines:
        if has_dots and _is_dots(line):
            pieces.append([])
        else:
            pieces[-1].append(line)
    return pieces


def _is_dots(line: str) -> bool:
    return is_bare(line) or (place_holder(line) and "..." in line)
