"""Replacements of an edit: short stretches that are likely to change elsewhere, too."""

from __future__ import annotations

import re

from lsp_server.text.line_diff import opcodes

_WORDS = re.compile(r"\w+|\s+|.", re.DOTALL)
_MOST_WORDS = 400


def changed_stretches(old: str, new: str) -> list[tuple[str, str]]:
    """Short stretches of a line that became others, old and new text, each with a word in it."""
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(before), len(after)) > _MOST_WORDS:
        return []
    stretches = []
    for kind, first, end, new_first, new_end in opcodes(before, after):
        old_text, other = "".join(before[first:end]), "".join(after[new_first:new_end])
        if kind != "replace" or "\n" in old_text + other or "\r" in old_text + other:
            continue
        if old_text.strip() == old_text and other.strip() == other and re.search(r"\w", old_text):
            stretches.append((old_text, other))
    return stretches
