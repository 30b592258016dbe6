"""Notes on hunks: they mark what a model changed beyond the instruction."""

from __future__ import annotations

from dataclasses import replace

from lsp_server.editor.editing.hunks import apply_hunks, line_by_line, minimal_hunks
from lsp_server.editor.editing.scope_of_instruction import changes_more
from lsp_server.text.text_edit import TextEdit

ONLY_WHITE_SPACE = "only white space"
NOT_IN_INSTRUCTION = "not part of the instruction"


def noted_hunks(old: str, new: str, instruction: str, language: str) -> list[TextEdit[int]]:
    """What turns ``old`` into ``new``, with notes."""
    hunks = [one for hunk in minimal_hunks(old, new) for one in line_by_line(old, hunk)]
    return [replace(one, note=_note(old, one, instruction, language)) for one in hunks]


def _note(old: str, hunk: TextEdit[int], instruction: str, language: str) -> str:
    if "".join(old[hunk.start : hunk.end].split()) == "".join(hunk.text.split()):
        return ONLY_WHITE_SPACE
    alone = apply_hunks(old, [hunk])
    return NOT_IN_INSTRUCTION if changes_more(instruction, old, alone, language) else ""
