"""The indentation of new lines, by what lies between an old text and the lines of the file that it
stands for."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lsp_server.tasks.apply.definitions import depth, indentation

TAB = "\t"
_USUAL = 4


@dataclass(frozen=True)
class IndentTable:
    """``indents``: the file's indentation for one of the edit; ``unit``: one step in the file;
    ``step``: how wide one is in the edit."""

    indents: Mapping[str, str]
    unit: str
    step: int

    @classmethod
    def of(cls, old: Sequence[str], region: Sequence[str], new: Sequence[str]) -> IndentTable:
        """Make the table of an old text and its lines in the file, which are as many."""
        pairs = zip(old, region, strict=True)
        counted: dict[str, Counter[str]] = {}
        for line, own in pairs:
            if line.strip() and own.strip():
                counted.setdefault(indentation(line), Counter())[indentation(own)] += 1
        indents = {key: counts.most_common(1)[0][0] for key, counts in counted.items()}
        steps = [width for lines in (old, new) for width in _steps(lines)]
        own_steps = _steps(region)
        is_tabs = any(indent.startswith(TAB) for indent in indents.values())
        step = min(steps, default=_USUAL)
        return cls(indents, TAB if is_tabs else " " * min(own_steps, default=step), step)

    def written(self, line: str) -> str:
        """Return ``line`` as deep as the file has it there."""
        indent = indentation(line)
        if not line.strip() or not self.indents:
            return line
        return self._indent(indent) + line[len(indent) :]

    def _indent(self, indent: str) -> str:
        if indent in self.indents:
            return self.indents[indent]
        if all(key == value for key, value in self.indents.items()):
            return indent
        shallower = [key for key in self.indents if indent.startswith(key)]
        if shallower:
            nearest = max(shallower, key=len)
            return self.indents[nearest] + self._converted(indent[len(nearest) :])
        # Less deep than all of them: by as many steps as it lacks.
        nearest = min(self.indents, key=depth)
        own = self.indents[nearest]
        lacks = (depth(nearest) - depth(indent)) / max(self.step, 1)
        return own[: max(0, len(own) - round(lacks * len(self.unit)))]

    def _converted(self, indent: str) -> str:
        """Return more indentation of the edit in the file's unit."""
        is_tabs = TAB in indent
        if is_tabs == (self.unit == TAB) and (is_tabs or len(self.unit) == self.step):
            return indent
        steps = indent.count(TAB) + indent.count(" ") / self.step
        return self.unit * int(steps) + " " * round(steps % 1 * self.step)


def _steps(lines: Sequence[str]) -> list[int]:
    """Return how much deeper lines are than those above them, where they are indented by blanks."""
    widths = [depth(line) for line in lines if line.strip() and TAB not in indentation(line)]
    return [after - before for before, after in itertools.pairwise(widths) if after - before > 1]
