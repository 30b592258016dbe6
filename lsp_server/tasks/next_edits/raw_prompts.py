"""Prompts for next edits as Zed, cursortab and others send them as plain text to
``/v1/completions``: the window in them is what the answer copies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from lsp_server.tasks.next_edits.replacements import changed_stretches


class RawWindow(NamedTuple):
    """What a prompt asks to be rewritten: the answer that changes nothing, and what the edits in
    the prompt replaced, old and new text."""

    expected: str
    rewrites: list[tuple[str, str]]


_MARKS = "<|file_sep|>", "<file_sep>"
_REGION_START, _REGION_END = "<|editable_region_start|>\n", "<|editable_region_end|>"
_CONFLICT, _CONFLICT_END = "<<<<<<< CURRENT\n", "=======\n<[fim-middle]>"
_FIRST_MARKER, _MIDDLE = "<|marker_1|>", "<[fim-middle]>"
_MARKER = r"<\|marker_\d+\|>"
_CURSORS = re.compile(r"<\|cursor\|>|<\|user_cursor\|>|<\|user_cursor_is_here\|>")
_MOST_EDITS, _MOST_REWRITES = 16, 8


def raw_window(prompt: str) -> RawWindow | None:
    """The window of a prompt in one of the formats; None where it is in none."""
    for mark in _MARKS:
        if (found := _sweep(prompt, mark)) is not None:
            return found
    expected = _CURSORS.sub("", _zeta_1(prompt) or _zeta_2(prompt) or _zeta_2_1(prompt))
    if not expected:
        return None
    rewrites = _rewrites(_of_diffs(prompt))
    if first := re.match(_MARKER, expected):
        # Where nothing changes, the first marker is written twice.
        rewrites.append((expected[first.end() :], first[0]))
    return RawWindow(expected, rewrites)


def _sweep(prompt: str, mark: str) -> RawWindow | None:
    """Blocks with a header each, of which ``updated/…`` is the last and has little or no text."""
    *blocks, last = prompt.split(mark)
    if len(blocks) < 2 or not last.startswith("updated/") or not blocks[-1].startswith("current/"):
        return None
    ahead = last.partition("\n")[2]
    window = blocks[-1].partition("\n")[2]
    window = _CURSORS.sub("", window if window.endswith("\n") else f"{window}\n")
    return RawWindow(window.removeprefix(ahead), _rewrites(map(_of_block, blocks)))


def _of_block(block: str) -> tuple[str, str]:
    """What a recent change was, and what it became; empty texts for other blocks."""
    _, header, text = block.partition("\noriginal:\n")
    old, middle, new = text.partition("\nupdated:\n")
    return (f"{old}\n", new) if header and middle else ("", "")


def _zeta_1(prompt: str) -> str:
    if not prompt.rstrip().endswith("### Response:"):
        return ""
    start = prompt.rfind(_REGION_START)
    end = prompt.find(_REGION_END, start) if start >= 0 else -1
    return prompt[start : end + len(_REGION_END)] if end >= 0 else ""


def _zeta_2(prompt: str) -> str:
    start = prompt.rfind(_CONFLICT)
    if start < 0 or not prompt.endswith(_CONFLICT_END):
        return ""
    return f"{prompt[start + len(_CONFLICT) : -len(_CONFLICT_END)]}>>>>>>> UPDATED"


def _zeta_2_1(prompt: str) -> str:
    start = prompt.rfind(_FIRST_MARKER)
    if start < 0 or not prompt.endswith(_MIDDLE):
        return ""
    # Blocks that stay are not written: the first of an answer is most likely the cursor's.
    if cursor := _CURSORS.search(prompt, start):
        start = prompt.rfind("<|marker_", start, cursor.start())
    return prompt[start : -len(_MIDDLE)].removesuffix("\n")


def _of_diffs(prompt: str) -> list[tuple[str, str]]:
    """Lines that unified diffs took away, with those that came in their place."""
    found: list[tuple[str, str]] = []
    old: list[str] = []
    new: list[str] = []
    for line in [*prompt.split("\n"), ""]:
        if line.startswith("-") and not line.startswith("---") and not new:
            old.append(line[1:])
        elif line.startswith("+") and not line.startswith("+++") and old:
            new.append(line[1:])
        else:
            found += [("\n".join(old), "\n".join(new))] if old and new else []
            old, new = [line[1:]] if line.startswith("-") else [], []
    return found


def _rewrites(edits: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The stretches that edits replaced, the latest edit's first."""
    found: dict[str, str] = {}
    for old, new in reversed(list(edits)[-_MOST_EDITS:]):
        for one, other in changed_stretches(old, new):
            found.setdefault(one, other)
    return list(found.items())[:_MOST_REWRITES]
