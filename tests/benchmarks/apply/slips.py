"""Search and replace with the slips of models, made of commits, in three forms: blocks, the fields
of edit tools, a diff without numbers."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from lsp_server.tasks.apply.edit_text import apply_text
from lsp_server.tasks.apply.replacements import TextChange, apply_replacements
from tests.benchmarks.apply.snippets import search_and_replace

Halves = tuple[list[str], list[str]]
_CONTEXT, _LONG_CONTEXT = 3, 8


def _outdented(old: list[str], new: list[str]) -> Halves:
    """Return both halves as far to the left as they can stand."""
    code = [line for line in (*old, *new) if line.strip()]
    width = min(len(line) - len(line.lstrip()) for line in code)
    return [line[width:] for line in old], [line[width:] for line in new]


def _deeper(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" if line.strip() else line for line in lines]


def _flat(lines: Sequence[str]) -> list[str]:
    return [line.lstrip() for line in lines]


def _dotted(old: list[str], new: list[str]) -> Halves:
    """Return halves with dots for what both have below their first line and above the change."""
    pairs = enumerate(zip(old, new, strict=False))
    start = next((n for n, (line, other) in pairs if line != other), 0)
    if start < 4:
        return old, new
    return [old[0], "...", *old[start - 1 :]], [new[0], "...", *new[start - 1 :]]


SLIPS: Mapping[str, Callable[[list[str], list[str]], Halves]] = {
    "none": lambda old, new: (old, new),
    "outdented": _outdented,
    "deeper": lambda old, new: (_deeper(old), _deeper(new)),
    "old half deeper": lambda old, new: (_deeper(old), new),
    "blanks at line ends": lambda old, new: ([f"{line}  " for line in old], new),
    "empty first line": lambda old, new: (["", *old], ["", *new]),
    "no indentation": lambda old, new: (_flat(old), _flat(new)),
    "old half without": lambda old, new: (_flat(old), new),
    "new half without": lambda old, new: (old, _flat(new)),
    "dots": _dotted,
}


def halves_with(slip: str, before: str, after: str) -> list[Halves]:
    """Return the change from ``before`` to ``after`` as halves with a slip."""
    pairs = search_and_replace(before, after, _LONG_CONTEXT if slip == "dots" else _CONTEXT)
    return [SLIPS[slip](old.splitlines(), new.splitlines()) for old, new in pairs]


def _by_blocks(text: str, halves: Sequence[Halves], language: str | None) -> str:
    blocks = [
        ["<<<<<<< SEARCH", *old, "=======", *new, ">>>>>>> REPLACE", ""] for old, new in halves
    ]
    return apply_text(text, "".join("\n".join(block) for block in blocks), language).text


def _by_fields(text: str, halves: Sequence[Halves], language: str | None) -> str:
    texts = [["".join(f"{line}\n" for line in half) for half in each] for each in halves]
    changes = [TextChange(old, new).replacement for old, new in texts]
    return apply_replacements(text, changes, language).text


def _by_diff(text: str, halves: Sequence[Halves], language: str | None) -> str:
    lines = ["--- a/file", "+++ b/file"]
    for old, new in halves:
        lines += ["@@ @@", *(f"{line[0]}{line[2:]}" for line in difflib.ndiff(old, new))]
    return apply_text(
        text, "\n".join([*(line for line in lines if line[0] != "?"), ""]), language
    ).text


FORMS: Mapping[str, Callable[[str, Sequence[Halves], str | None], str]] = {
    "blocks": _by_blocks,
    "fields": _by_fields,
    "diff": _by_diff,
}


def lost_lines(text: str, after: str) -> int:
    """Return how many lines of code ``text`` lacks of those that ``after`` has."""
    lines, own = (
        Counter(filter(None, map(str.strip, each.splitlines()))) for each in (after, text)
    )
    return (lines - own).total()
