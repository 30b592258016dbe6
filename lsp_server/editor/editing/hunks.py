"""The shortest replacements that turn one text into another. Offsets are code points of the old
text."""

from __future__ import annotations

import difflib
import re
from itertools import accumulate

from lsp_server.text.line_diff import opcodes
from lsp_server.text.text_edit import TextEdit
from repo_index.common_ends import common_ends

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_REST = re.compile(r"[^\r\n]*")
_MARK = re.compile(r"[\u0300-\u036f\u200d\ufe00-\ufe0f\u20d0-\u20f0\U0001f3fb-\U0001f3ff]")
"""Code points that belong to the one before them."""

CONTEXT = 3
"""Lines around a change in a unified diff."""


def minimal_hunks(old: str, new: str) -> list[TextEdit[int]]:
    """Return replacements in order that do not touch each other; ``apply_hunks`` turns ``old`` into
    ``new`` with them. No hunk begins or ends between ``\\r`` and ``\\n``, or between a character
    and its combining marks."""
    hunks = []
    for start, end, text in _changed_lines(old, new):
        head, right = _common_ends(old[start:end], text)
        hunks.append(TextEdit(start + head, end - right, text[head : len(text) - right]))
    return [hunk for hunk in hunks if hunk.start != hunk.end or hunk.text]


def line_by_line(old: str, hunk: TextEdit[int]) -> list[TextEdit[int]]:
    """Split ``hunk`` into one hunk for each changed line if the number of lines stays and each line
    keeps most of its text; otherwise return it as it is."""
    start = _line_start(old, hunk.start)
    rest = _REST.match(old, hunk.end)
    end = rest.end() if rest is not None else hunk.end
    before = _lines(old[start:end])
    after = _lines(old[start : hunk.start] + hunk.text + old[hunk.end : end])
    if len(before) != len(after) or len(before) < 2:
        return [hunk]
    edits: list[TextEdit[int]] = []
    offset = start
    for line, new in zip(before, after, strict=True):
        head, right = _common_ends(line, new)
        if 2 * (head + right) < max(len(line), len(new)):
            return [hunk]
        if line != new:
            text = new[head : len(new) - right]
            edits.append(TextEdit(offset + head, offset + len(line) - right, text))
        offset += len(line)
    return edits


def apply_hunks(old: str, hunks: list[TextEdit[int]]) -> str:
    """Return ``old`` with ``hunks`` applied."""
    pieces, offset = [], 0
    for hunk in hunks:
        pieces += [old[offset : hunk.start], hunk.text]
        offset = hunk.end
    return "".join([*pieces, old[offset:]])


def unified_diff(old: str, new: str, path: str) -> str:
    """Return a unified diff of two versions of a file."""
    before, after = _lines(old), _lines(new)
    marked: list[str] = []
    matcher = difflib.SequenceMatcher[str]()
    changes = opcodes(before, after)
    matcher.get_opcodes = lambda: changes  # type: ignore[method-assign]
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if not marked:
            marked += [f"--- a/{path}\n", f"+++ b/{path}\n"]
        (_, first, _, new_first, _), (_, _, last, _, new_last) = group[0], group[-1]
        marked.append(f"@@ -{_span(first, last)} +{_span(new_first, new_last)} @@\n")
        for kind, start, end, new_start, new_end in group:
            if kind == "equal":
                marked += [_whole(" ", line) for line in before[start:end]]
                continue
            marked += [_whole("-", line) for line in before[start:end]]
            marked += [_whole("+", line) for line in after[new_start:new_end]]
    return "".join(marked)


def _span(start: int, end: int) -> str:
    """Return the range of lines in the notation of unified diffs."""
    count = end - start
    first = start + 1 if count else start
    return f"{first}" if count == 1 else f"{first},{count}"


def _whole(mark: str, line: str) -> str:
    """Return ``line`` as a line of a diff behind ``mark``, with a line end in any case."""
    end = "" if line.endswith("\n") else "\n"
    missing = "" if line.endswith(("\n", "\r")) else "\\ No newline at end of file\n"
    return f"{mark}{line}{end}{missing}"


def _lines(text: str) -> list[str]:
    """Lines with their ends, by the three line ends of the protocol and no others."""
    return _LINE.findall(text)


def _changed_lines(old: str, new: str) -> list[tuple[int, int, str]]:
    head, _ = _common_ends(old, new)
    head = _line_start(old, head)
    if old[head - 1 : head + 1] == "\r\n" or new[head - 1 : head + 1] == "\r\n":
        head = _line_start(old, head - 1)
    old_lines, new_lines = _lines(old[head:]), _lines(new[head:])
    starts = list(accumulate(map(len, old_lines), initial=head))
    return [
        (starts[first], starts[last], "".join(new_lines[new_first:new_last]))
        for kind, first, last, new_first, new_last in opcodes(old_lines, new_lines)
        if kind != "equal"
    ]


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def _common_ends(old: str, new: str) -> tuple[int, int]:
    """Return the lengths of the common start, and of the common end of the rest; both lie between
    whole characters of both."""
    head, tail = common_ends(old, new)
    while head and not (_is_border(old, head) and _is_border(new, head)):
        head -= 1
    while tail and not (_is_border(old, len(old) - tail) and _is_border(new, len(new) - tail)):
        tail -= 1
    return head, tail


def _is_border(text: str, offset: int) -> bool:
    if offset in (0, len(text)):
        return True
    return text[offset - 1 : offset + 1] != "\r\n" and not _MARK.match(text[offset])
