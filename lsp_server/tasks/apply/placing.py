"""Writes the hunks of a snippet as they stand in the file: with the file's own lines where they are
the same, and as deep as the file is."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

from lsp_server.tasks.apply.definitions import closes_block, defined_name, indentation

_WORD = re.compile(r"\w")
Span = tuple[int, int]
"""Lines of the file, from 0, the end exclusive."""
Lines = tuple[str, ...]


def placed(hunks: Sequence[Lines], olds: Sequence[Sequence[str]]) -> tuple[Lines, ...] | None:
    """The hunks in place of old lines. Where all lines that are the same are indented otherwise by
    one width, all hunks are indented as the file is. None where it is not clear how deep."""
    same = [_same(hunk, old) for hunk, old in zip(hunks, olds, strict=True)]
    shifts = [
        {_shift(hunk[number], line) for number, line in pairs.items() if line.strip()}
        for hunk, pairs in zip(hunks, same, strict=True)
    ]
    every = set[tuple[str, str]]().union(*shifts)
    if len(every) == 1 and every != {("", "")}:
        ((more, less),) = every
        moved = [_moved(hunk, pairs, more, less) for hunk, pairs in zip(hunks, same, strict=True)]
        return None if None in moved else tuple(tuple(lines or ()) for lines in moved)
    if any(own and ("", "") not in own for own in shifts):
        return None
    return tuple(
        tuple(_kept(pairs.get(number, line), line) for number, line in enumerate(hunk))
        for hunk, pairs in zip(hunks, same, strict=True)
    )


def _same(hunk: Sequence[str], old: Sequence[str]) -> Mapping[int, str]:
    """Of the lines of a hunk that are old ones those: but for white space behind where any line of
    code is, else but for that around."""
    exact = _paired([line.rstrip() for line in hunk], [line.rstrip() for line in old], old)
    if any(map(_WORD.search, exact.values())):
        return exact
    loose = _paired([line.strip() for line in hunk], [line.strip() for line in old], old)
    is_code = any(_WORD.search(line) for line in loose.values())
    if not is_code and any(line.strip() for line in exact.values()):
        return exact
    return loose


def _paired(new: list[str], texts: list[str], old: Sequence[str]) -> Mapping[int, str]:
    blocks = difflib.SequenceMatcher(None, texts, new, autojunk=False).get_matching_blocks()
    return {block.b + n: old[block.a + n] for block in blocks for n in range(block.size)}


def _kept(old: str, new: str) -> str:
    return old if old.rstrip() == new.rstrip() else new


def _moved(hunk: Sequence[str], same: Mapping[int, str], more: str, less: str) -> list[str] | None:
    made: list[str] = []
    for number, line in enumerate(hunk):
        if number in same or not line.strip():
            made.append(same.get(number, line))
        elif line.startswith(less):
            made.append(more + line[len(less) :])
        else:
            return None
    return made


def _shift(new: str, old: str) -> tuple[str, str]:
    """Return what stands more before an old line than before the new one, and what less."""
    old_indent, new_indent = indentation(old), indentation(new)
    if old_indent.endswith(new_indent):
        return old_indent[: len(old_indent) - len(new_indent)], ""
    if new_indent.endswith(old_indent):
        return "", new_indent[: len(new_indent) - len(old_indent)]
    return old_indent, new_indent


def joined(
    lines: Sequence[str], regions: Sequence[Span], news: Sequence[Lines]
) -> tuple[tuple[Span, ...], tuple[Lines, ...]]:
    """Regions and their new lines where empty lines at a border are those of the file, and of the
    snippet only what it has more."""
    spans: list[Span] = []
    texts: list[Lines] = []
    place = 0
    for number, ((start, end), new) in enumerate(zip(regions, news, strict=True)):
        following = regions[number + 1][0] if number + 1 < len(regions) else len(lines)
        lead, tail = blank(new), blank(new[::-1])
        blanks = blank(lines[start:end])
        head = start + min(lead or blanks, blanks)
        foot = end - (blank(lines[head:end][::-1]) if tail else 0)
        above = head - start + blank(lines[place:start][::-1])
        below = end - foot + blank(lines[end:following])
        code = new[lead : len(new) - tail]
        # Below a place holder an empty line parts nothing from a line that is the file's.
        if code and head < foot and _is_about(code[0], lines[head]):
            above = lead
        if code and head < foot and _is_about(code[-1], lines[foot - 1]):
            below = tail
        if head < foot and (not code or closes_block(code[0]) > closes_block(lines[head])):
            # Of the empty lines around what goes those on one side go with it.
            gaps = blank(lines[place:head][::-1]), blank(lines[foot:following])
            is_end = bool(code) or foot == len(lines) or closes_block(lines[foot])
            head -= gaps[0] if is_end else 0
            foot += 0 if code else min(gaps)
        spans.append((head, foot))
        texts.append(("",) * (lead - above) + code + ("",) * (tail - below))
        place = foot
    return tuple(spans), tuple(texts)


def _is_about(line: str, other: str) -> bool:
    """Return whether a line is another one, or defines the same."""
    return line.strip() == other.strip() or (defined_name(line) or "-") == defined_name(other)


def blank(lines: Sequence[str]) -> int:
    """Return how many lines are empty before the first that is not."""
    return next((n for n, line in enumerate(lines) if line.strip()), len(lines))
