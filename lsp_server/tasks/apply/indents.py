"""The indentation of new lines, by what lies between an old text and the lines of the file that it
stands for."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lsp_server.tasks.apply.definitions import closes_block, depth, indentation, opens_block

TAB = "\t"
_USUAL = 4


@dataclass(frozen=True)
class IndentTable:
    """``indents``: the file's indentation for one of the edit; ``unit``: one step in the file;
    ``step``: how wide one is in the edit; ``unclear``: indentations of lines that the file has at
    different ones."""

    indents: Mapping[str, str]
    unit: str
    step: int
    unclear: frozenset[str] = frozenset()

    @classmethod
    def of(cls, old: Sequence[str], region: Sequence[str], new: Sequence[str]) -> IndentTable:
        """Make the table of an old text and its lines in the file, which are as many."""
        pairs = zip(old, region, strict=True)
        counted: dict[str, Counter[str]] = {}
        for line, own in pairs:
            if line.strip() and own.strip():
                counted.setdefault(indentation(line), Counter())[indentation(own)] += 1
        indents = {key: counts.most_common(1)[0][0] for key, counts in counted.items()}
        unclear = frozenset(key for key, counts in counted.items() if len(counts) > 1)
        steps = _steps(old) or _steps(new)
        own_steps = _steps(region)
        is_tabs = any(indent.startswith(TAB) for indent in indents.values())
        step = min(steps, default=_USUAL)
        unit = TAB if is_tabs else " " * min(own_steps, default=step)
        return cls(indents, unit, step, unclear)

    @classmethod
    def of_change(
        cls,
        old: Sequence[str],
        region: Sequence[str],
        new: Sequence[str],
        same: Sequence[tuple[str, str, str]],
    ) -> IndentTable:
        """Make the table of ``old``, which stands at ``region``, and ``new``. ``same``: lines that
        both have, as they have them and as the file has."""
        table = cls.of(old, region, new)
        code = [lines for lines in same if lines[0].strip()]
        indents = [[*map(indentation, lines)] for lines in code]
        is_as_in_file = all(new == own for _, new, own in indents)
        depths = [*map(least_depth, (old, region, new))]
        is_moved = any(before != own for before, _, own in indents) and depths[1] <= depths[2]
        is_own = is_moved if code else depths[0] != depths[1] == depths[2]
        if is_as_in_file and is_own:
            # The new text alone is indented as the file.
            return cls.of(region, region, new)
        levels = {new: own for _, new, own in indents}
        if table.unclear and 1 < len(levels) == len({*levels.values()}):
            # The old text has lost its levels, the new one has them.
            _, news, owns = zip(*code, strict=True)
            return cls.of(news, owns, new)
        if table._hides_levels(old, new):
            return replace(table, unclear=frozenset(table.indents))
        if _is_flattened(old, new, [line for line, *_ in code]):
            return cls.of([line.lstrip() for line in old], region, new)
        return table

    def _hides_levels(self, old: Sequence[str], new: Sequence[str]) -> bool:
        """Return whether the edit is flat where the file is deep, and a block in it is opened."""
        code = [*filter(str.strip, new)]
        is_flat = not any(map(depth, (*old, *code))) and any(self.indents.values())
        pairs = itertools.pairwise(code)
        return is_flat and any(opens_block(line) and not closes_block(n) for line, n in pairs)

    def tells(self, line: str) -> bool:
        """Return whether it is clear how deep the file has a line."""
        return not line.strip() or self._nearest(indentation(line)) not in self.unclear

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
        if (nearest := self._nearest(indent)) is not None:
            return self.indents[nearest] + self._converted(indent[len(nearest) :])
        # Less deep than all of them: by as many steps as it lacks.
        nearest = min(self.indents, key=depth)
        own = self.indents[nearest]
        lacks = (depth(nearest) - depth(indent)) / max(self.step, 1)
        return own[: max(0, len(own) - round(lacks * len(self.unit)))]

    def _nearest(self, indent: str) -> str | None:
        """Return the deepest known indentation that ``indent`` begins with."""
        shallower = [key for key in self.indents if indent.startswith(key)]
        return max(shallower, key=len, default=None)

    def _converted(self, indent: str) -> str:
        """Return more indentation of the edit in the file's unit."""
        is_tabs = TAB in indent
        if is_tabs == (self.unit == TAB) and (is_tabs or len(self.unit) == self.step):
            return indent
        steps = indent.count(TAB) + indent.count(" ") / self.step
        return self.unit * int(steps) + " " * round(steps % 1 * self.step)


def indents_by_place(
    region: Sequence[str], span: tuple[int, int], came: Sequence[str]
) -> list[str] | None:
    """Return how deep lines stand that come for those at ``span`` of ``region``, whose own
    indentation tells nothing: as deep as these, or as those around. None if that is not clear."""
    start, end = span
    gone = [line for line in region[start:end] if line.strip()]
    code = [line for line in came if line.strip()]
    if gone and [*map(opens_block, gone)] == [*map(opens_block, code)]:
        own = iter(map(indentation, gone))
        return [next(own) if line.strip() else "" for line in came]
    if any(opens_block(line) or closes_block(line) for line in code):
        return None
    above = next(filter(str.strip, reversed(region[:start])), "")
    below = next(filter(str.strip, region[end:]), "")
    around = gone or [below if opens_block(above) else above, below]
    is_clear = len({*map(indentation, around)}) == 1 and all(around)
    return [indentation(around[0]) if line.strip() else "" for line in came] if is_clear else None


def _is_flattened(old: Sequence[str], new: Sequence[str], same: Sequence[str]) -> bool:
    """Return whether ``new`` has lost the indentation of ``same``, the lines of ``old`` that it
    has, too: it has none, and no block that is opened goes."""
    code = [line for line in new if line.strip()]
    opened = sum(map(opens_block, old)) - sum(map(opens_block, same))
    return len(code) > 1 and not opened and not any(map(depth, code)) and any(map(depth, same))


def least_depth(lines: Sequence[str]) -> int:
    """The depth of the lines of code that are the least deep."""
    return min((depth(line) for line in lines if line.strip()), default=0)


def _steps(lines: Sequence[str]) -> list[int]:
    """Return how much deeper lines are than those above them, where they are indented by blanks."""
    widths = [depth(line) for line in lines if line.strip() and TAB not in indentation(line)]
    return [after - before for before, after in itertools.pairwise(widths) if after - before > 1]
