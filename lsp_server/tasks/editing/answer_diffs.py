"""Applies answers that are differences: unified diffs, patches, and search-and-replace blocks.

They are applied where they fit exactly, in one place.
"""

from __future__ import annotations

from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.apply.edit_text import format_of
from lsp_server.tasks.apply.replacements import FileUpdate, LineReplacement, replaced_lines
from lsp_server.tasks.apply.unified_diff import SKIPPED, diff_hunks

_LANGUAGES = ("diff", "patch", "udiff")
DOES_NOT_FIT = "the model answered with a diff that does not fit the selection; edit again"


def is_diff(text: str, language: str, original: str) -> bool:
    """Return True if a block is a diff instead of code; never if the original looks like one."""
    if format_of(original):
        return False
    if format_of(text):
        return True
    lines = [line for line in text.split("\n") if line.strip()]
    return (
        language in _LANGUAGES
        and any(line.startswith(("+", "-")) for line in lines)
        and all(line[0] in "+- \t@\\" or SKIPPED.match(line) for line in lines)
    )


def patched(text: str, original: str, before: str = "", after: str = "") -> str:
    """The original after the changes of a difference; before, after: what surrounds it, which a
    difference may show and not change.

    Raises EditRefused where it does not fit exactly, in one place.
    """
    above, lines, below = _lines(before), _lines(original), _lines(after)
    if before.endswith("\n"):
        above = above[:-1]
    if below and original.endswith("\n"):
        # The empty line after the last line end is where the text after it begins.
        lines = lines[:-1]
    file_lines = [*above, *lines, *below]
    first, last = len(above), len(above) + len(lines)
    form = format_of(text)
    updates = form.read(text) if form else [FileUpdate("", tuple(diff_hunks(text)))]
    hunks = [hunk for update in updates for hunk in update.replacements if hunk.changes]
    if not hunks:
        raise EditRefused(DOES_NOT_FIT)
    new_lines: list[str] = []
    line = 0
    for hunk in hunks:
        start = _place_of(hunk, file_lines, line, first, last)
        end = start + len(hunk.old)
        new_lines += file_lines[line:start]
        new_lines += replaced_lines(tuple(file_lines[start:end]), hunk.old, hunk.new)
        line = end
    new_lines += file_lines[line:]
    end = len(new_lines) - len(below)
    if new_lines[:first] != above or new_lines[end:] != below:
        raise EditRefused(DOES_NOT_FIT)
    edited = new_lines[first:end]
    return "\n".join([*edited, ""] if below and original.endswith("\n") else edited)


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def _place_of(
    hunk: LineReplacement, lines: list[str], first_line: int, first: int, last: int
) -> int:
    """Return the line at which the old lines of a hunk stand. Raises EditRefused unless there is
    exactly one."""
    old, size = hunk.old, len(hunk.old)
    if not size:
        raise EditRefused(DOES_NOT_FIT)
    # Models do not see blanks at the end of a line.
    matches = [
        line
        for line in range(first_line, len(lines) - size + 1)
        if all(
            old_line.rstrip() == other.rstrip()
            for old_line, other in zip(lines[line : line + size], old, strict=True)
        )
    ]
    inside = [line for line in matches if first <= line and line + size <= last] or matches
    if len(inside) > 1:
        # The numbers count from the selection, which is all that the model was to edit.
        inside = [line for line in inside if hunk.line and line == first + hunk.line - 1]
    if len(inside) != 1:
        raise EditRefused(DOES_NOT_FIT)
    return inside[0]
