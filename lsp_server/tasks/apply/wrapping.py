"""Takes off what stands around the code that a model sends: fences, sentences, headings that name
files, the line numbers that reading tools print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from lsp_server.tasks.apply.place_holders import place_holder
from lsp_server.text.syntax.languages import language_of_path

FENCE = re.compile(r"^\s*(?P<fence>`{3,}|~{3,})\s*(?P<info>[^`]*)$")
_PATH = r"(?:[\w.@+-]*/)*[\w@+-][\w.@+-]*\.\w+|(?:[\w.@+-]*/)+[\w.@+-]+"
_HEADING = re.compile(
    rf"^(?:[#*`>\s]|//|--|;|\d+\.\s)*(?:[Ff]ile(?:name)?\s*:|[Pp]ath\s*:)?[\s*`]*(?P<path>{_PATH})[`*:\s]*$"
)
_BARE_HEADING = re.compile(rf"^(?P<path>{_PATH}):?$")
_IN_INFO = re.compile(rf"(?:^|[\s:=\"'])(?P<path>{_PATH})")
_NUMBERED = re.compile(r"^\s*(?P<number>\d+)(?:→|\t|[ \t]*\|[ \t]?|[ \t]*│[ \t]?)(?P<text>.*)$")
LONGEST_HEADING = 400
HOLDER = "# ... existing code ..."


class Section(NamedTuple):
    """Code, and the path that stands above it; empty where none does."""

    path: str
    text: str


def heading_path(line: str) -> str:
    """Return the path that a line consists of; nothing where it says more or less."""
    heading = _HEADING.match(line) if len(line) < LONGEST_HEADING else None
    return heading["path"] if heading else ""


def sections(text: str, file: Sequence[str], is_markdown: bool = False) -> list[Section]:
    """Return the code in ``text``, file by file, without what stands around it. What ``file`` has
    itself is code."""
    lines = text.split("\n")
    own = {line.strip() for line in file}
    fences = _whole_fence(lines) if is_markdown else _fences(lines, own)
    fenced = {number for start, end in fences for number in range(start, end + 1)}
    outside = [n for n, line in enumerate(lines) if line.strip() and n not in fenced]
    if fences and not any(_is_code(lines[n], own) for n in outside):
        return _joined(_fenced(lines, fences), file)
    return _joined(_headed(lines, own), file)


def _fences(lines: Sequence[str], own: set[str]) -> list[tuple[int, int]]:
    """Return the lines that open and close fences; the end of the text closes the last."""
    fences: list[tuple[int, int]] = []
    opened: tuple[int, str] | None = None
    for number, line in enumerate(lines):
        mark = FENCE.match(line)
        if mark is None or (line.strip() in own and opened is not None):
            continue
        if opened is None:
            opened = number, mark["fence"]
        elif mark["fence"].startswith(opened[1]) and not mark["info"].strip():
            fences.append((opened[0], number))
            opened = None
    return [*fences, (opened[0], len(lines))] if opened else fences


def _whole_fence(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return the fence around all lines of a Markdown text, if there is one."""
    code = [number for number, line in enumerate(lines) if line.strip()]
    if len(code) < 2:
        return []
    first, last = FENCE.match(lines[code[0]]), FENCE.match(lines[code[-1]])
    if not first or not last or first["fence"] != last["fence"] or last["info"].strip():
        return []
    if re.match(r"(?:md|markdown)?\s*$", first["info"]) is None:
        return []
    inner = [FENCE.match(line) for line in lines[code[0] + 1 : code[-1]]]
    same = [mark for mark in inner if mark and mark["fence"].startswith(first["fence"])]
    is_around = len(same) % 2 == 0 and (not same or bool(first["info"].strip()))
    return [(code[0], code[-1])] if is_around else []


def _is_code(line: str, own: set[str]) -> bool:
    """Return whether a line outside of fences belongs to the code."""
    return line.strip() in own or place_holder(line) or line[:1].isspace()


def _fenced(lines: Sequence[str], fences: Sequence[tuple[int, int]]) -> Iterator[Section]:
    last = 0
    for start, end in fences:
        above = next((line for line in reversed(lines[last:start]) if line.strip()), "")
        mark = FENCE.match(lines[start])
        assert mark is not None
        in_info = _IN_INFO.search(mark["info"][:LONGEST_HEADING])
        path = heading_path(above) or (in_info["path"] if in_info else "")
        yield Section(path, "\n".join(lines[start + 1 : end]) + "\n")
        last = end + 1


def _headed(lines: Sequence[str], own: set[str]) -> Iterator[Section]:
    """Yield the code below each heading, if a text begins with one."""
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    heads = [
        number
        for number, line in enumerate(lines)
        if len(line) < LONGEST_HEADING
        and _BARE_HEADING.match(line)
        and line not in own
        and language_of_path(line.strip(": "))
    ]
    if not heads or heads[0] != first or not any(map(str.strip, lines[first + 1 :])):
        yield Section("", "\n".join(lines))
        return
    for start, end in pairwise([*heads, len(lines)]):
        text = "\n".join(lines[start + 1 : end])
        yield Section(heading_path(lines[start]), text + "\n" * (end < len(lines)))


def _joined(read_sections: Iterator[Section], file: Sequence[str]) -> list[Section]:
    """Return the sections without line numbers; those of one file as one."""
    texts: dict[str, list[str]] = {}
    for section in read_sections:
        text = "\n".join(without_numbers(section.text.split("\n"), file))
        texts.setdefault(section.path, []).append(text)
    return [Section(path, f"{HOLDER}\n".join(pieces)) for path, pieces in texts.items()]


def without_numbers(lines: Sequence[str], file: Sequence[str]) -> Sequence[str]:
    """Return ``lines`` without the numbers in front of them, if all of them have rising ones and
    those of ``file`` have none."""
    numbered = [_NUMBERED.match(line) for line in lines]
    code = [n for n, line in enumerate(lines) if line.strip() and not place_holder(line)]
    numbers = [int(mark["number"]) for n in code if (mark := numbered[n])]
    if not code or len(numbers) < len(code) or numbers != sorted(set(numbers)):
        return lines
    if any(_NUMBERED.match(line) for line in file):
        return lines
    return [mark["text"] if mark else line for mark, line in zip(numbered, lines, strict=True)]
