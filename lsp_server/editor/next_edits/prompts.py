"""The prompt of a window in a format, as pieces of text, and the answer that is expected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from string import Formatter

from lsp_server.editor.next_edits.windows import RecentEdit, Window
from lsp_server.tasks.next_edits.formats import NextEditFormat
from repo_index.common_ends import common_ends

Piece = tuple[str, bool]
"""A text, and whether it is the user's: in the others names of control tokens stand for them."""

LEAST_BLOCK, MOST_BLOCK = 6, 16
"""Lines of a block between two markers (Zeta 2.1)."""
_NO_BORDER = re.compile(r"\s*(?:[)\]}]|end\b|break\b|return\b|else\b|elif\b|except\b|finally\b)")


def prompt_pieces(window: Window, fmt: NextEditFormat) -> list[Piece]:
    """Return the prompt, one piece after another."""
    edits: list[Piece] = []
    for number, edit in enumerate(window.edits):
        edits += [(fmt.between_edits, False)] if number and fmt.between_edits else []
        edits += [(fmt.suggested, False)] if edit.is_suggested and fmt.suggested else []
        edits += _filled(fmt.edit, _fields_of(edit))
    before: list[Piece] = [(_text(window.before), True)]
    if fmt.file_start and window.at_start:
        before.insert(0, (fmt.file_start, False))
    fields: dict[str, list[Piece]] = {
        "path": [(window.path, True)],
        "edits": edits,
        "original": [(_text(window.original), True)],
        "window": window_pieces(window, fmt),
        "before": before,
        "after": [(_text(window.after), True)],
        "start": [(str(window.first + 1), False)],
        "end": [(str(window.first + len(window.lines)), False)],
        "file": [(_text(window.file), True)],
        "prefill": [(prefill(window, fmt), True)],
    }
    # Neighbours of one kind are one piece.
    runs = groupby(filter(itemgetter(0), _filled(fmt.prompt, fields)), key=itemgetter(1))
    return [("".join(text for text, _ in run), is_users) for is_users, run in runs]


def holds_marks(window: Window, fmt: NextEditFormat) -> bool:
    """Return whether something of the user's text could be taken for a part of the format."""
    visible = "".join(text for text, is_users in prompt_pieces(window, fmt) if is_users)
    text = f"{visible}{window.text}"
    return any(mark in text for mark in fmt.marks) or bool(
        fmt.marker and re.search(fmt.marker.format(number=r"\d+").replace("|", r"\|"), text)
    )


def prefill(window: Window, fmt: NextEditFormat) -> str:
    """Return what of the answer is in the prompt already: the lines above the cursor."""
    if not fmt.writes_ahead or window.cursor is None:
        return ""
    return _text(window.lines[: window.cursor[0]])


def window_pieces(window: Window, fmt: NextEditFormat) -> list[Piece]:
    """Return the window as the prompt shows it: with the cursor, and with markers."""
    borders = set(block_borders(window.lines)) if fmt.marker else set()
    pieces: list[Piece] = []
    number = 0
    for index, line in enumerate(window.lines):
        if index in borders:
            number += 1
            pieces.append((fmt.marker.format(number=number), False))
        if fmt.cursor and window.cursor is not None and window.cursor[0] == index:
            column = window.cursor[1]
            pieces += [(line[:column], True), (fmt.cursor, False), (f"{line[column:]}\n", True)]
        else:
            pieces.append((f"{line}\n", True))
    if fmt.marker:
        pieces.append((fmt.marker.format(number=number + 1), False))
    return pieces


def expected_answer(window: Window, fmt: NextEditFormat) -> str:
    """Return the answer that changes nothing, as the model would write it, for drafts."""
    if fmt.answer == "tagged":
        return f"{fmt.opens}\n{window.text}{fmt.closes}"
    if fmt.answer == "conflict":
        return f"{window.text}{fmt.closes}"
    if fmt.answer == "markers":
        # Blocks that stay are not written: the first of an answer is most likely the cursor's.
        borders = [*block_borders(window.lines), len(window.lines)]
        first = _block_at_cursor(window)
        pieces = fmt.marker.format(number=first + 1)
        for number, (start, end) in enumerate(pairwise(borders[first:]), first + 2):
            pieces += _text(window.lines[start:end]) + fmt.marker.format(number=number)
        return pieces
    return window.text.removeprefix(prefill(window, fmt))


def expected_rewrites(window: Window, fmt: NextEditFormat) -> list[tuple[str, str]]:
    """Return what may become other text in the expected answer, old and new: what edits replaced,
    and with markers all after the first one, which is written twice where nothing changes."""
    if fmt.answer != "markers":
        return list(window.changes)
    mark = fmt.marker.format(number=_block_at_cursor(window) + 1)
    return [*window.changes, (expected_answer(window, fmt).removeprefix(mark), mark)]


def _block_at_cursor(window: Window) -> int:
    index = window.cursor[0] if window.cursor is not None else 0
    return max(n for n, line in enumerate(block_borders(window.lines)) if line <= index)


def block_borders(lines: Sequence[str]) -> list[int]:
    """Return where blocks of a window begin: at its start, then every few lines, where a line
    follows a blank one if there is such a place nearby."""
    pieces, index = [0], 0
    while len(lines) - index > MOST_BLOCK:
        near = range(index + LEAST_BLOCK, min(index + MOST_BLOCK + 1, len(lines)))
        good = (line for line in near if lines[line].strip() and not lines[line - 1].strip()
                and not _NO_BORDER.match(lines[line]))  # fmt: skip
        index = next(good, near[-1])
        pieces.append(index)
    return pieces


def _fields_of(edit: RecentEdit) -> dict[str, list[Piece]]:
    return {
        "path": [(edit.path, True)],
        "old": [(_text(edit.old), True)],
        "new": [(_text(edit.new), True)],
        "start": [(str(edit.line + 1), False)],
        "end": [(str(edit.line + len(edit.new)), False)],
        "hunk": [(_hunk(edit), True)],
    }


def _hunk(edit: RecentEdit) -> str:
    """Return an edit as a hunk of a unified diff."""
    old, new = list(edit.old), list(edit.new)
    head, tail = common_ends(old, new)
    first = edit.line + 1
    lines = [f"@@ -{first},{len(old)} +{first},{len(new)} @@"]
    lines += [f" {line}" for line in old[:head]]
    lines += [f"-{line}" for line in old[head : len(old) - tail]]
    lines += [f"+{line}" for line in new[head : len(new) - tail]]
    lines += [f" {line}" for line in old[len(old) - tail :]]
    return _text(lines)


def _filled(template: str, fields: dict[str, list[Piece]]) -> list[Piece]:
    pieces: list[Piece] = []
    for literal, name, _, _ in Formatter().parse(template):
        if literal:
            pieces.append((literal, False))
        if name is not None:
            pieces += fields[name]
    return pieces


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
