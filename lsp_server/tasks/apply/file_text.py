"""A file as lines without their ends, and how it is put together again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lsp_server.tasks.apply.placing import Lines, Span
from lsp_server.text.documents.document import line_end, split_lines, with_line_feeds
from repo_index.common_ends import common_ends

_MARK = "\ufeff"


@dataclass(frozen=True)
class FileText:
    """``ends``: how each line ends, the last one perhaps with nothing; ``mark``: a byte order mark,
    or nothing."""

    lines: Lines
    ends: tuple[str, ...]
    mark: str

    @classmethod
    def of(cls, text: str) -> FileText:
        """Take a text apart."""
        mark = _MARK if text.startswith(_MARK) else ""
        text = text.removeprefix(_MARK)
        if "\r" not in text:
            *ended, last = text.split("\n")
            unended = (last,) if last else ()
            return cls((*ended, *unended), ("\n",) * len(ended) + ("",) * len(unended), mark)
        lines = split_lines(text)
        if not lines[-1]:
            lines.pop()
        ends = tuple(line_end(line) for line in lines)
        bare = (line[: len(line) - len(end)] for line, end in zip(lines, ends, strict=True))
        return cls(tuple(bare), ends, mark)

    @cached_property
    def end(self) -> str:
        """Return how its lines end, most of them."""
        counted = Counter(end for end in self.ends if end)
        return max(counted, key=counted.__getitem__, default="\n")

    @property
    def _is_ended(self) -> bool:
        return not self.ends or bool(self.ends[-1])

    def joined(self, lines: Sequence[str]) -> str:
        """Lines as the whole file."""
        return self.mark + self.end.join(lines) + (self.end if self._is_ended else "")

    def replaced(self, spans: Sequence[Span], news: Sequence[Sequence[str]]) -> str:
        """The file with lines for others; what stays is as it was."""
        pieces = [self.mark]
        copied = 0
        for (start, end), new in zip(spans, news, strict=True):
            old = self.lines[start:end]
            head, tail = common_ends([*old], [*new])
            pieces += self._kept(copied, start + head)
            pieces += [line + self.end for line in new[head : len(new) - tail]]
            copied = end - tail
        pieces += self._kept(copied, len(self.lines))
        text = "".join(pieces)
        return text if self._is_ended else text.removesuffix(self.end)

    def _kept(self, start: int, end: int) -> list[str]:
        lines_with_ends = zip(self.lines[start:end], self.ends[start:end], strict=True)
        return [line + (ending or self.end) for line, ending in lines_with_ends]


def lines_of(text: str) -> list[str]:
    """The lines of a text without their ends, a byte order mark left out."""
    lines = with_line_feeds(text.removeprefix(_MARK)).split("\n")
    return lines if lines[-1] else lines[:-1]
