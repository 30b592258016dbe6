"""Marks of a snippet that say which lines are put in or go: ``+`` and ``-`` in front of them, and
comments such as ``# remove NAME`` (the published rules of Relace and aiXapply)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from lsp_server.tasks.apply.definitions import (
    Definition,
    assigned_name,
    defined_name,
    definitions_of,
)
from lsp_server.tasks.apply.place_holders import LONGEST_COMMENT, place_holder
from lsp_server.tasks.apply.refusals import MORE_CONTEXT, AmbiguousSnippet
from lsp_server.tasks.apply.wordings import LISTS

_COMMENT = re.compile(
    r"^\s*(?:#|//|--|;|%|/\*|<!--|\{/\*|\(\*)[\s.…(]*(?P<text>.*?)[\s.…)]*(?:\*/\}?|-->|\*\))?$"
)
_REMOVES = re.compile(
    r"(?:removed?|deleted?)\b[\s:]*(?P<what>.*)|(?P<name>.+?)[\s:,(-]+"
    r"(?:(?:is|was|were|has been|have been)\s+)?(?:removed|deleted)$",
    re.IGNORECASE,
)
_KINDS = re.compile(rf"\b(?:{LISTS['removed']})\b", re.IGNORECASE)
_EDGES = re.compile(r"^\W+|\W+$")
_IMPORTS = re.compile(r"\s*(?:import|from|use|#include)\b")
_ABOVE = re.compile(r"\s*(?:@|#\[|//|/\*|\*|#(?!include)|--)")
"""Lines above a definition that belong to it."""


class NamedLines:
    """The lines of a file by their texts and by the names that they are about."""

    def __init__(self, file: Sequence[str]) -> None:
        self.file = file
        self.definitions: defaultdict[str, list[Definition]] = defaultdict(list)
        self.texts, self.values, self.imports = (defaultdict[str, list[int]](list) for _ in "123")
        for definition in definitions_of(file):
            self.definitions[definition.path[-1]].append(definition)
        for number, line in enumerate(file):
            self.texts[_EDGES.sub("", line)].append(number)
            self.values["".join(assigned_name(line).split()[-1:])].append(number)
            for word in set(re.findall(r"\w+", line) if _IMPORTS.match(line) else ()):
                self.imports[word].append(number)


class MarkedLines(NamedTuple):
    """Lines without marks, the numbers of those that go and of those that are put in, and of those
    beside them, which have to be lines of the file."""

    lines: Sequence[str]
    gone: frozenset[int] = frozenset()
    came: frozenset[int] = frozenset()
    beside: frozenset[int] = frozenset()


def marked_lines(lines: Sequence[str], file: Sequence[str]) -> MarkedLines:
    """Return ``lines`` without marks, with the lines of ``file`` that are to go in place of the
    comments that say so."""
    signed = _without_signs(lines, file)
    lines = signed.lines
    own = {line.strip() for line in file}
    names = {defined_name(line) for line in lines}
    named: NamedLines | None = None
    unmarked: list[str] = []
    numbers: set[int] = set()
    moved: dict[int, int] = {}
    for number, line in enumerate(lines):
        is_comment = len(line) < LONGEST_COMMENT and line.strip() not in own
        comment = _COMMENT.match(line) if is_comment else None
        removes = _REMOVES.match(comment["text"].strip()) if comment else None
        if removes is None:
            moved[number] = len(unmarked)
            unmarked.append(line)
            continue
        what = removes["what"] if removes["what"] is not None else removes["name"]
        named = named or NamedLines(file)
        removed = _removed(what, named, names, lines, _code_around(lines, number))
        if removed is None and _KINDS.sub("", what).strip():
            unmarked.append(line)
        elif removed is not None:
            numbers |= {*range(len(unmarked), len(unmarked) + len(removed))}
            unmarked += removed
    gone, came, beside = ({moved[n] for n in each if n in moved} for each in signed[1:])
    numbers |= gone
    gone = numbers | _spare_blanks(unmarked, numbers)
    return MarkedLines(unmarked, frozenset(gone), frozenset(came), frozenset(beside))


def _code_around(lines: Sequence[str], number: int) -> tuple[str, str]:
    """Return the lines above and below one that are not empty, without their indentation."""
    above = next(filter(str.strip, reversed(lines[:number])), "")
    return above.strip(), next(filter(str.strip, lines[number + 1 :]), "").strip()


def _removed(
    what: str, named: NamedLines, names: set[str], lines: Sequence[str], around: tuple[str, str]
) -> Sequence[str] | None:
    """Return the lines that a comment between two others names; None where it names none."""
    text, file = _EDGES.sub("", what), named.file
    same = named.texts[text] if text else []
    if is_repeated := len(same) > 1:
        beside = [(n, zip(_code_around(file, n), around, strict=True)) for n in same]
        same = [n for n, pairs in beside if any(own == shown for own, shown in pairs)]
    if len(same) == 1:
        return file[same[0] : same[0] + 1]
    if is_repeated:
        raise AmbiguousSnippet(f"{text}, which is to go, stands in several places; {MORE_CONTEXT}")
    words = [word for word in re.findall(r"[\w$]+", _KINDS.sub(" ", text)) if word not in names]
    if len(words) > 4:
        return None
    for word in words:
        definitions = named.definitions[word]
        if len(definitions) == 1:
            start = definitions[0].start
            while start and _ABOVE.match(file[start - 1]) and file[start - 1] not in lines:
                start -= 1
            return file[start : definitions[0].end]
        for numbers in (named.values[word], named.imports[word]):
            if len(numbers) == 1:
                return file[numbers[0] : numbers[0] + 1]
    return None


def _spare_blanks(lines: Sequence[str], gone: set[int]) -> set[int]:
    """Return the empty lines beside lines that go which would stand twice."""
    spare: set[int] = set()
    for number in gone:
        if number + 1 in gone:
            continue
        start = number
        while start in gone:
            start -= 1
        end = number + 1
        while end < len(lines) and not lines[end].strip():
            end += 1
        is_last = end == len(lines) or place_holder(lines[end])
        if start >= 0 and not lines[start].strip() and not is_last:
            spare |= {*range(number + 1, end)}
        elif is_last:
            while start >= 0 and not lines[start].strip():
                spare.add(start)
                start -= 1
    return spare


def _without_signs(lines: Sequence[str], file: Sequence[str]) -> MarkedLines:
    """Return ``lines`` without ``+`` and ``-`` in front of those between place holders."""
    has_signs = any(line.startswith(("+", "-")) for line in lines)
    if not has_signs or any(line.startswith("+") for line in file):
        return MarkedLines(lines)
    own = {line.strip() for line in file}
    result: list[str] = []
    gone: set[int] = set()
    came: set[int] = set()
    beside: set[int] = set()
    start = 0
    for number in [*(n for n, line in enumerate(lines) if place_holder(line)), len(lines)]:
        hunk = lines[start:number]
        if _has_signs(hunk, own):
            texts = {*file}
            strips = sum(line[1:] in texts for line in hunk if line.startswith(" "))
            plain = [line for line in hunk if line.strip() and line[:1] not in ("+", "-")]
            is_difference = all(line.strip() in own for line in plain)
            is_shifted = strips > sum(line in texts for line in hunk if line.startswith(" "))
            for line in hunk:
                if line.startswith(("+", "-")) or is_difference:
                    numbers = {"-": gone, "+": came}.get(line[:1], beside)
                    numbers.add(len(result))
                # A line of context may lack its blank.
                is_kept = line in texts or (not is_shifted and line[1:] not in texts)
                has_sign = line.startswith(("+", "-")) or (line.startswith(" ") and not is_kept)
                result.append(line[has_sign:])
        else:
            result += hunk
        result += lines[number : number + 1]
        start = number + 1
    return MarkedLines(result, frozenset(gone), frozenset(came), frozenset(beside))


def _has_signs(hunk: Sequence[str], own: set[str]) -> bool:
    """Return whether signs in front of lines are no part of them."""
    minus = [line for line in hunk if line.startswith("-")]
    is_removed = all(line[1:].strip() in own and line.strip() not in own for line in minus)
    return is_removed and any(line.startswith(("+", "-")) for line in hunk)
