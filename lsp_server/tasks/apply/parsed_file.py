"""Whether a file still parses with other lines in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from lsp_server.tasks.apply.placing import Lines, Span
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit


class ParsedFile:
    """A file that is parsed once; of its changes only what they reach is."""

    def __init__(self, lines: Sequence[str], tree: SyntaxTree | None) -> None:
        self._tree = tree
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
            changes = [
                TextEdit(self._start(start), self._start(end), "\n".join([*new, ""]))
                for (start, end), new in zip(spans, news, strict=True)
            ]
            self._known[spans, news] = self._tree.edited(changes).has_errors
        return self._known[spans, news]

    def _start(self, line: int) -> int:
        """Where a line begins in the text."""
        return self._lengths[line] + line
