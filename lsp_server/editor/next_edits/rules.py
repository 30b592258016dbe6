"""Rules for the changes of an answer that are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby

from lsp_server.editor.editing.checks import new_problem
from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.editor.next_edits.windows import Window, shown_line
from lsp_server.text.documents.document import Document
from lsp_server.text.text_edit import TextEdit

LINES_ABOVE = 4
"""A change that begins more lines above the cursor is not shown."""
MOST_ADDED = 20
"""Lines that a change adds at most (Sweep's number)."""
MOST_REPEATS = 3
"""A line that comes so often one after another is a loop."""
LEAST_REPEATED = 3
"""Characters of an insertion that repeat what is right beside it."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\ufeff\ud800-\udfff]")


def refusal(
    window: Window, hunk: TextEdit[int], recent: Sequence[RecordedEdit], document: Document
) -> str:
    """Return why a change of a window of ``document`` is not shown; empty where it is. recent: the
    edits of all documents, the latest first."""
    text = window.text
    old, new = text[hunk.start : hunk.end], hunk.text
    if "".join(old.split()) == "".join(new.split()):
        return "it changes blanks alone"
    if _CONTROLS.search(new):
        return "it has control characters"
    line = text.count("\n", 0, hunk.start)
    if window.cursor is not None and line < window.cursor[0] - LINES_ABOVE:
        return "it is far above the cursor"
    if new.count("\n") - old.count("\n") > MOST_ADDED:
        return "it adds too many lines"
    if _repeats(text, hunk):
        return "it repeats itself"
    for edit in recent:
        if edit.document is document and (reason := _against(window, hunk, edit)):
            return reason
    return ""


def does_not_parse(
    window: Window, hunks: Iterable[TextEdit[int]], document: str, start: int
) -> str:
    """Return why a document no longer parses with changes of its window, which begins after
    ``start`` characters; empty where it does, or did not."""
    changed = apply_hunks(window.text, list(hunks))
    new = document[:start] + changed + document[start + len(window.text) :]
    return new_problem(document, new, window.language)


def _repeats(text: str, hunk: TextEdit[int]) -> bool:
    """Return whether the new text has a line over and over, or lines that are beside it."""
    added = [line for line in hunk.text.split("\n") if line.strip()]
    if any(len([*run]) >= MOST_REPEATS for _, run in groupby(added)):
        return True
    if hunk.start != hunk.end:
        return False
    if len(added) < 2:
        beside = text[: hunk.start].endswith(hunk.text) or text[hunk.end :].startswith(hunk.text)
        return beside and len(hunk.text.strip()) >= LEAST_REPEATED
    above, below = text[: hunk.start].rstrip("\n"), text[hunk.end :].lstrip("\n")
    block = hunk.text.strip("\n")
    return above.endswith(block) or below.startswith(block)


def _against(window: Window, hunk: TextEdit[int], edit: RecordedEdit) -> str:
    """Return whether a change takes back an edit, or deletes what was just written."""
    first, end = edit.line - window.first, edit.end - window.first
    if end < 0 or first > len(window.lines):
        return ""
    starts = [*accumulate((len(line) + 1 for line in window.lines), initial=0)]
    start_at, end_at = (starts[min(max(line, 0), len(window.lines))] for line in (first, end))
    if hunk.end < start_at or hunk.start > end_at or (hunk.start == end_at > start_at):
        return ""
    old, new = ([shown_line(line) for line in lines] for lines in (edit.old, edit.new))
    after = apply_hunks(window.text, [hunk])
    grown = len(hunk.text) - (hunk.end - hunk.start)
    becomes = after[min(start_at, hunk.start) : max(end_at, hunk.end) + grown]
    if old and "".join(f"{line}\n" for line in old) == becomes:
        return "it takes back an edit"
    if not hunk.text.strip():
        was_written = {line.strip() for line in new} - {line.strip() for line in old} - {""}
        removed = window.text[hunk.start : hunk.end]
        is_whole = any(line.strip() in was_written for line in removed.split("\n"))
        if is_whole or (was_written and "\n" not in removed):
            return "it deletes what was just written"
    written = set(_words(new)) - set(_words(old))
    lost = set(_words([window.text[hunk.start : hunk.end]])) - set(_words([hunk.text]))
    back = set(_words([hunk.text])) & (set(_words(old)) - set(_words(new)))
    if written & lost and back:
        return "it takes back an edit"
    return ""


def _words(lines: Iterable[str]) -> list[str]:
    return re.findall(r"\w+", "\n".join(lines))
