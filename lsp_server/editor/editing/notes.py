"""Notes on hunks: they mark what a model changed beyond the instruction."""

from __future__ import annotations

from dataclasses import replace

from lsp_server.editor.editing.hunks import apply_hunks, line_by_line, minimal_hunks
from lsp_server.editor.editing.much_new_text import brings_much_new_text
from lsp_server.editor.editing.scope_of_instruction import changes_more
from lsp_server.text.text_edit import TextEdit

ONLY_WHITE_SPACE = "only white space"
NOT_IN_INSTRUCTION = "not part of the instruction"


def noted_hunks(
    old: str, new: str, instruction: str, language: str, around: str = ""
) -> list[TextEdit[int]]:
    """Return the hunks that turn ``old`` into ``new``, with notes. ``around``: the text that
    contains ``old``."""
    hunks = [line_hunk for hunk in minimal_hunks(old, new) for line_hunk in line_by_line(old, hunk)]
    return [
        replace(line_hunk, note=_note(old, line_hunk, instruction, language, around))
        for line_hunk in hunks
    ]


def _note(old: str, hunk: TextEdit[int], instruction: str, language: str, around: str) -> str:
    if "".join(old[hunk.start : hunk.end].split()) == "".join(hunk.text.split()):
        return ONLY_WHITE_SPACE
    alone = apply_hunks(old, [hunk])
    is_more = changes_more(instruction, old, alone, language)
    is_more = is_more or brings_much_new_text(old, alone, instruction, around)
    return NOT_IN_INSTRUCTION if is_more else ""
