"""Whether a file still parses with other lines in it.

Python's grammar here passes over lines that are too deep, so Python itself is asked where some are.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from itertools import accumulate, pairwise

from lsp_server.tasks.apply.definitions import depth
from lsp_server.tasks.apply.placing import Lines, Span
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit

_OPENS = (":", "(", "[", "{", ",", "\\")
"""A line that may have a deeper one below it ends so."""


class ParsedFile:
    """A file that is parsed once; of its changes only what they reach is."""

    def __init__(self, lines: Sequence[str], tree: SyntaxTree | None) -> None:
        self._lines, self._tree = lines, tree
        self._lengths = [0, *accumulate(map(len, lines))]
        self._known: dict[tuple[tuple[Span, ...], tuple[Lines, ...]], bool] = {}

    @classmethod
    def of(cls, lines: Sequence[str], language: str | None) -> ParsedFile:
        """Parse a file, where there is a grammar."""
        tree = SyntaxTree.of("\n".join([*lines, ""]), language) if language else None
        return cls(lines, tree)

    def breaks(self, spans: tuple[Span, ...], news: tuple[Lines, ...]) -> bool:
        """Whether the file parses, and does not with new lines for old ones."""
        if self._tree is None or self._tree.has_errors:
            return False
        if (spans, news) not in self._known:
            self._known[spans, news] = self._breaks(self._tree, spans, news)
        return self._known[spans, news]

    def _breaks(self, tree: SyntaxTree, spans: tuple[Span, ...], news: tuple[Lines, ...]) -> bool:
        edited = tree.edited(
            [
                TextEdit(self._start(start), self._start(end), "\n".join([*new, ""]))
                for (start, end), new in zip(spans, news, strict=True)
            ]
        )
        if edited.has_errors:
            return True
        if tree.grammar != "python" or not self._may_be_too_deep(spans, news):
            return False
        return _is_python(tree.text) and not _is_python(edited.text)

    def _may_be_too_deep(self, spans: tuple[Span, ...], news: tuple[Lines, ...]) -> bool:
        """Whether a line is deeper than the one above it, which does not look as if it may be."""
        for (start, end), new in zip(spans, news, strict=True):
            above = next(filter(str.strip, reversed(self._lines[:start])), "")
            below = next(filter(str.strip, self._lines[end:]), "")
            code = [above, *filter(str.strip, new), below]
            for upper, lower in pairwise(code):
                if depth(lower) > depth(upper) and not upper.rstrip().endswith(_OPENS):
                    return True
        return False

    def _start(self, line: int) -> int:
        """Where a line begins in the text."""
        return self._lengths[line] + line


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
