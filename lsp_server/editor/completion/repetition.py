"""Finds text that repeats itself to the end: the same lines or words over and over. A block that
comes twice is no loop."""

from __future__ import annotations

import re

from lsp_server.text.syntax.brackets import Unpaired, unpaired

REPEATS = 3
"""Lines that come one after another so often, up to the end, are a loop."""
REPEATS_ANYWHERE = 12
"""So often is a loop, whatever follows."""
LONGEST_UNIT = 12
"""Lines."""

_PHRASES = re.compile(r"(?P<phrase>.{3,40}?)(?P=phrase){3,}")
_BRACKETS = re.compile(r"[()\[\]{}]")


def without_loop(text: str) -> str:
    """Cut a text after the first round of a loop."""
    lines = text.split("\n")
    for size in range(1, min(LONGEST_UNIT, len(lines) // REPEATS) + 1):
        for start in range(len(lines) - size * REPEATS + 1):
            unit = lines[start : start + size]
            if any(line.strip() for line in unit) and _loops(lines, start, size):
                return "\n".join(lines[: start + size])
    return _without_phrase_loop(text)


def _loops(lines: list[str], start: int, size: int) -> bool:
    unit = lines[start : start + size]
    end = start + size
    repeats = 1
    while lines[end : end + size] == unit:
        repeats += 1
        end += size
    if repeats >= REPEATS_ANYWHERE:
        return True
    return repeats >= REPEATS and _begins_again(lines[end:], unit)


def _begins_again(rest: list[str], unit: list[str]) -> bool:
    """Return True if ``rest`` is empty, or one more round that was cut off."""
    while rest and not rest[-1].strip():
        rest = rest[:-1]
    if not rest:
        return True
    if len(rest) > len(unit):
        return False
    *rounds, last = rest
    return rounds == unit[: len(rounds)] and unit[len(rounds)].startswith(last)


def _without_phrase_loop(text: str) -> str:
    """Cut within a line after the first of four equal phrases in a row that do not end."""
    for match in _PHRASES.finditer(text):
        phrase = match["phrase"]
        if re.search(r"\w", phrase) is None:
            continue
        repeats = (match.end() - match.start()) // len(phrase)
        rest = text[match.end() :].rstrip()
        if phrase.startswith(rest) or repeats >= REPEATS_ANYWHERE:
            return text[: match.start() + len(phrase)]
    return text


def is_echo(text: str, prefix: str) -> bool:
    """Return True if a text only repeats the last lines before the cursor. A block in brackets may
    come twice in a row, but not three times."""
    line_before = prefix[prefix.rfind("\n") + 1 :]
    if line_before.strip():
        return False
    written = [line for line in _ends_off(line_before + text) if line.strip()]
    if len(written) < 2:
        return False
    before = [line for line in _ends_off(prefix[: -len(line_before) or None]) if line.strip()]
    if before[-len(written) :] != written:
        return False
    if not _is_block(written):
        return True
    return before[-2 * len(written) : -len(written)] == written


def _is_block(lines: list[str]) -> bool:
    opens = any(line.endswith(("{", "[", "(")) for line in lines[:-1])
    return opens and unpaired(_BRACKETS.findall("\n".join(lines))) == Unpaired("", "")


def _ends_off(text: str) -> list[str]:
    return [line.rstrip() for line in text[-20_000:].split("\n")]
