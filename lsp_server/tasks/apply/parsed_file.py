"""Tells whether a file still parses with other lines in it, and its brackets balance.

Python's grammar here passes over lines that are too deep, so Python itself is asked where some are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from lsp_server.tasks.apply.definitions import depth
from lsp_server.tasks.apply.file_text import lines_of
from lsp_server.tasks.apply.placing import Lines, Span
from lsp_server.tasks.apply.refusals import MORE_CONTEXT, AmbiguousSnippet, shown
from lsp_server.text.line_diff import opcodes
from lsp_server.text.syntax.python_tree import parsed_python
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit

_CAUSES = [
    (re.compile(pattern), cause)
    for pattern, cause in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
]
"""Likely causes, by the line that does not parse."""
LARGEST_PARSED = 1 << 20
"""Characters of a file that is parsed. Of a larger one the brackets are counted."""
_OPENS = (":", "(", "[", "{", ",", "\\")
"""A line that may have a deeper one below it ends so."""


class ParsedFile:
    """A file that is parsed once; of its changes only what they reach is."""

    def __init__(self, lines: Sequence[str], tree: SyntaxTree | None, *, is_code: bool) -> None:
        self._lines, self.tree, self._is_code = lines, tree, is_code
        self._lengths = [0, *accumulate(map(len, lines))]
        self._known: dict[tuple[tuple[Span, ...], tuple[Lines, ...]], bool] = {}

    @classmethod
    def of(cls, lines: Sequence[str], language: str | None) -> ParsedFile:
        """Parse a file, where there is a grammar."""
        text = "\n".join([*lines, ""])
        is_parsed = language and len(text) <= LARGEST_PARSED
        tree = SyntaxTree.of(text, language) if language and is_parsed else None
        return cls(lines, tree, is_code=bool(language))

    def breaks(self, spans: tuple[Span, ...], news: tuple[Lines, ...]) -> bool:
        """Return whether the file parses, and does not with new lines for old ones; where that
        cannot be told, whether its brackets do not balance as they did."""
        if (spans, news) not in self._known:
            self._known[spans, news] = self._breaks(spans, news)
        return self._known[spans, news]

    def _breaks(self, spans: tuple[Span, ...], news: tuple[Lines, ...]) -> bool:
        tree = self.tree
        is_python = tree is not None and tree.grammar == "python"
        is_known = tree is not None and not tree.has_errors
        if tree is None or not (is_known or (is_python and _python_error(tree.text) is None)):
            return changes_balance(self._lines, spans, news, is_code=self._is_code)
        edited = tree.edited(
            [
                TextEdit(self._start(start), self._start(end), "\n".join([*new, ""]))
                for (start, end), new in zip(spans, news, strict=True)
            ]
        )
        if is_known and edited.has_errors:
            return True
        if not is_python or (is_known and not self._may_be_too_deep(spans, news)):
            return False
        return _python_error(edited.text) is not None and _python_error(tree.text) is None

    def _may_be_too_deep(self, spans: tuple[Span, ...], news: tuple[Lines, ...]) -> bool:
        """Return True if a line is deeper than the one above it, which does not look as if it may
        be, or none stands in a block."""
        for (start, end), new in zip(spans, news, strict=True):
            above = next(filter(str.strip, reversed(self._lines[:start])), "")
            below = next(filter(str.strip, self._lines[end:]), "")
            code = [above, *filter(str.strip, new), below]
            for upper, lower in pairwise(code):
                opens = upper.rstrip().endswith(_OPENS if depth(lower) > depth(upper) else ":")
                if opens is not (depth(lower) > depth(upper)):
                    return True
        return False

    def _start(self, line: int) -> int:
        """Return where a line begins in the text."""
        return self._lengths[line] + line


def _python_error(text: str) -> int | None:
    """Return the line, from 0, at which Python itself does not parse a text."""
    try:
        parsed_python(text.removeprefix("\ufeff"))
    except SyntaxError as error:
        return max(0, (error.lineno or 1) - 1)
    return None


def refuse_broken(original: str, text: str, language: str | None) -> None:
    """Raise AmbiguousSnippet if ``original`` parses and ``text`` does not; where that cannot be
    told, if its brackets do not balance as they did."""
    old, new = (lines_of(each) for each in (original, text))
    changes = [each for each in opcodes(old, new) if each[0] != "equal"]
    spans = tuple((start, end) for _, start, end, _, _ in changes)
    parsed = ParsedFile.of(old, language)
    if (parsed.tree is None and not original.strip()) or not parsed.breaks(
        spans, tuple(tuple(new[start:end]) for *_, start, end in changes)
    ):
        return
    if parsed.tree is None or parsed.tree.has_errors:
        raise AmbiguousSnippet(f"the brackets of the file would not balance; {MORE_CONTEXT}")
    line = SyntaxTree.parsed(text, parsed.tree.grammar).first_error()
    raise broken(new, (_python_error(text) or 0) if line is None else line)


def broken(lines: Sequence[str], line: int) -> AmbiguousSnippet:
    """Return the refusal of a file whose line ``line``, from 0, does not parse."""
    text = shown(lines[line : line + 1])
    cause = next((cause for mark, cause in _CAUSES if mark.search(text)), "")
    return AmbiguousSnippet(
        f"the file with the edit does not parse at line {line + 1} ({text})"
        f"{': ' if cause else ''}{cause}; {MORE_CONTEXT}"
    )


def changes_balance(
    lines: Sequence[str], spans: Sequence[Span], news: Sequence[Lines], *, is_code: bool = True
) -> bool:
    """Return whether brackets are opened or closed more often with ``news`` in place of ``spans``
    of ``lines``. Prose has round ones that stand alone."""
    before = "\n".join(line for span in spans for line in lines[slice(*span)])
    after = "\n".join(line for new in news for line in new)
    return any(
        before.count(opens) - before.count(closes) != after.count(opens) - after.count(closes)
        for opens, closes in (("{}", "[]", "()") if is_code else ("{}", "[]"))
    )
