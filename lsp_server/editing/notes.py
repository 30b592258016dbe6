"""Notes on hunks: what a model changed beyond what it was asked to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from accel.text.edit_rules.recognition import recognise
from lsp_server.editing.hunks import Hunk, apply_hunks, line_by_line, minimal_hunks

ONLY_WHITE_SPACE = "only white space"
NOT_ASKED_FOR = "not part of the instruction"
_LINE_END = re.compile(r"\r\n|\r|\n")
NOT_OF_THE_RENAME = "not part of the rename"


def white_space_note(old: str, hunk: Hunk) -> str:
    """A note where nothing but white space changes; empty otherwise."""
    same = "".join(old[hunk.start : hunk.end].split()) == "".join(hunk.text.split())
    return ONLY_WHITE_SPACE if same else ""


def rename_note(old: str, hunk: Hunk, renamed: Sequence[Hunk]) -> str:
    """A note where a hunk is more than its part of a rename.

    old: the text that both change; renamed: what the rename alone changes.
    """
    parts = [one for one in renamed if one.start <= hunk.end and hunk.start <= one.end]
    start = min([hunk.start, *(one.start for one in parts)])
    end = max([hunk.end, *(one.end for one in parts)])
    moved = [Hunk(one.start - start, one.end - start, one.text) for one in parts]
    if (
        apply_hunks(old[start:end], moved)
        == old[start : hunk.start] + hunk.text + old[hunk.end : end]
    ):
        return ""
    return white_space_note(old, hunk) or NOT_OF_THE_RENAME


def place_note(old: str, hunk: Hunk, expected: Sequence[Hunk]) -> str:
    """A note where a hunk is off the places that the instruction is about.

    expected: the edit as a rule would make it, empty where no rule tells its places.
    """
    if any(_meet(old, one, hunk) for one in expected):
        return ""
    return white_space_note(old, hunk) or (NOT_ASKED_FOR if expected else "")


def _meet(old: str, one: Hunk, other: Hunk) -> bool:
    """Whether two changes are in one place: they overlap, or stand on one line or the next."""
    between = old[min(one.end, other.end) : max(one.start, other.start)]
    return len(_LINE_END.findall(between)) <= 1


def places_asked_for(instruction: str, old: str, language: str) -> list[Hunk]:
    """The edit of ``old`` as a rule would make it; empty where no rule tells its places."""
    starts = [place.start() for place in re.finditer(r"\r\n|[\s\S]", old)] + [len(old)]
    selection = re.sub(r"\r\n?", "\n", old)
    known = recognise(instruction, selection) if language == "python" else None
    if known is None or known.kind == "rename":
        return []
    changes = known.changes(selection)
    return [Hunk(starts[one.start], starts[one.end], one.text) for one in changes]


def noted_hunks(
    old: str, new: str, instruction: str, language: str, renamed: Sequence[Hunk] | None
) -> list[Hunk]:
    """What turns ``old`` into ``new``, with notes.

    renamed: the changes of the rename that the instruction is; None where it is no rename.
    """
    hunks = [one for hunk in minimal_hunks(old, new) for one in line_by_line(old, hunk)]
    if renamed is not None:
        return [replace(one, note=rename_note(old, one, renamed)) for one in hunks]
    expected = places_asked_for(instruction, old, language)
    return [replace(one, note=place_note(old, one, expected)) for one in hunks]
