"""Prompts for next edits as Zed, cursortab and others send them as plain text to
``/v1/completions``: the window in them is what the answer copies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from lsp_server.engine.next_edits.replacements import changed_stretches


class RawWindow(NamedTuple):
    """What a prompt wants rewritten: the answer that changes nothing, and what the edits in the
    prompt replaced, old and new text."""

    expected: str
    rewrites: list[tuple[str, str]]


_SEPARATOR = r"(?P<mark><\|file_sep\|>|<file_sep>)"
_SWEEP = re.compile(
    _SEPARATOR + r"current/(?P<path>[^\n]*)\n(?P<window>.*?)\n?(?P=mark)updated/[^\n]*"
    r"(?P<prefill>\n.*)?\Z",
    re.DOTALL,
)
_SWEEP_EDIT = re.compile(
    r"original:\n(?P<old>.*?)\n?updated:\n(?P<new>.*?)(?=<\|file_sep\|>|<file_sep>|\Z)", re.DOTALL
)
_ZETA_1 = re.compile(
    r"(?P<window><\|editable_region_start\|>\n.*?<\|editable_region_end\|>).*### Response:\s*\Z",
    re.DOTALL,
)
_ZETA_2 = re.compile(r"<<<<<<< CURRENT\n(?P<window>.*?)=======\n<\[fim-middle\]>\Z", re.DOTALL)
_ZETA_2_1 = re.compile(
    r"(?P<window><\|marker_1\|>.*<\|marker_\d+\|>)\n?<\[fim-middle\]>\Z", re.DOTALL
)
_CURSORS = re.compile(r"<\|cursor\|>|<\|user_cursor\|>|<\|user_cursor_is_here\|>")
_MOST_REWRITES = 8


def raw_window(prompt: str) -> RawWindow | None:
    """The window of a prompt in one of the formats; None where it is in none."""
    if found := _SWEEP.search(prompt):
        window = f"{_CURSORS.sub('', found['window'])}\n"
        ahead = (found["prefill"] or "").removeprefix("\n")
        diffs = [(one["old"], one["new"]) for one in _SWEEP_EDIT.finditer(prompt)]
        return RawWindow(window.removeprefix(ahead), _rewrites(diffs))
    edits = _of_diffs(prompt)
    if found := _ZETA_1.search(prompt):
        return RawWindow(_CURSORS.sub("", found["window"]), _rewrites(edits))
    if found := _ZETA_2.search(prompt):
        text = f"{_CURSORS.sub('', found['window'])}>>>>>>> UPDATED"
        return RawWindow(text, _rewrites(edits))
    if found := _ZETA_2_1.search(prompt):
        return RawWindow(_CURSORS.sub("", found["window"]), _rewrites(edits))
    return None


def _of_diffs(prompt: str) -> Iterable[tuple[str, str]]:
    """Lines that unified diffs took away, with those that came in their place."""
    for found in re.finditer(r"((?:^-(?!--).*\n)+)((?:^\+(?!\+\+).*\n)+)", prompt, re.MULTILINE):
        old, new = (re.sub(r"^.", "", part, flags=re.MULTILINE) for part in found.groups())
        yield old, new


def _rewrites(edits: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The stretches that edits replaced, the latest edit's first."""
    found: dict[str, str] = {}
    for old, new in reversed(list(edits)):
        for one, other in changed_stretches(old, new):
            found.setdefault(one, other)
    return list(found.items())[:_MOST_REWRITES]
