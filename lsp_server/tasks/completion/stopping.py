"""Decides where a completion ends: at the end of the line, or of the block around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

StopRule = Callable[[str], "int | None"]

MAX_LINES = 12

_CLOSERS = ")]}"
_LINE_END = re.compile(r"[\r\n]")


def indentation(line: str) -> int:
    """Width of the white space at a line's start; a tab counts to the next multiple of 8."""
    stripped = line.lstrip(" \t")
    return len(line[: len(line) - len(stripped)].expandtabs(8))


def single_line(text: str) -> int | None:
    """Cut at the first line end. A line end before any text does not count as one."""
    match = _LINE_END.search(text, len(text) - len(text.lstrip("\r\n")))
    return match.start() if match else None


def following(suffix: str) -> str:
    """Return the character that comes after a completion, but for blanks; a line feed where nothing
    of its line does."""
    return suffix.split("\n", 1)[0].strip()[:1] or "\n"


def completion(prefix: str, *, one_line: bool, gated: bool) -> StopRule:
    """Return the rule that ends a completion after ``prefix``: with its line or with the block, and
    with its first statement if it is ``gated``."""
    if one_line:
        return single_line
    ends = block(prefix)
    return (first_of([ends, statement(prefix)]) or ends) if gated else ends


def fence(mark: str) -> StopRule:
    """Cut before the line that closes a code block opened with ``mark``."""
    from accel.text.fences import closing_place

    return lambda text: closing_place(text, mark)


def before_other_files(rule: StopRule, marks: Sequence[str]) -> StopRule:
    """``rule``, and a cut before text with which another file begins."""
    if not marks:
        return rule

    def both(text: str) -> int | None:
        marks_found = [text.find(mark) for mark in marks]
        cuts = [cut for cut in [*marks_found, rule(text)] if cut is not None and cut >= 0]
        return min(cuts, default=None)

    return both


def strings(stops: Sequence[str]) -> StopRule:
    """Cut before the first of some texts."""
    longest = max(map(len, stops))
    looked_at = 0

    def rule(text: str) -> int | None:
        nonlocal looked_at
        start = max(looked_at - longest + 1, 0)
        looked_at = len(text)
        cuts = [cut for stop in stops if (cut := text.find(stop, start)) >= 0]
        return min(cuts, default=None)

    return rule


def line_end_after(seconds: float, now: Callable[[], float]) -> StopRule:
    """Cut at the last line end once ``seconds`` have passed since the first token."""
    started: float | None = None

    def rule(text: str) -> int | None:
        nonlocal started
        started = now() if started is None else started
        if now() - started < seconds or "\n" not in text:
            return None
        return text.rindex("\n")

    return rule


def less_indented(least: int) -> StopRule:
    """Cut before a line, not the first, with text after fewer than ``least`` blanks and tabs:
    llama.cpp's ``n_indent``."""
    looked_at = 0

    def rule(text: str) -> int | None:
        nonlocal looked_at
        newline = text.rfind("\n", 0, looked_at)
        newline = text.find("\n") if newline < 0 else newline
        looked_at = len(text)
        while newline >= 0:
            end = text.find("\n", newline + 1)
            line = text[newline + 1 :] if end < 0 else text[newline + 1 : end]
            if line.strip() and len(line) - len(line.lstrip(" \t")) < least:
                return newline
            newline = end
        return None

    return rule


def first_of(rules: Sequence[StopRule]) -> StopRule | None:
    """Cut where the first of several rules cuts; None of none."""
    if len(rules) <= 1:
        return rules[0] if rules else None

    def rule(text: str) -> int | None:
        return min((cut for rule in rules if (cut := rule(text)) is not None), default=None)

    return rule


def block(prefix: str) -> StopRule:
    """Cut where the block ends in which the cursor is after ``prefix``: before a line that is
    indented less, at two blank lines, and after :data:`MAX_LINES`. Closing brackets belong to the
    block before."""
    line = prefix[prefix.rfind("\n") + 1 :]
    floor = indentation(line) if line.strip() else len(line.expandtabs(8))

    def rule(text: str) -> int | None:
        lines = text.split("\n")
        start = 0
        for number, current in enumerate(lines):
            # The last line is still being written: it is judged once it has a character.
            if number and current.strip():
                if indentation(current) < floor and not _only_closes(current):
                    return max(0, start - 1)
                if number >= MAX_LINES:
                    return max(0, start - 1)
            if number >= 2 and not current.strip() and not lines[number - 1].strip():
                return len(text[:start].rstrip("\r\n \t"))
            start += len(current) + 1
        return None

    return rule


def statement(prefix: str) -> StopRule:
    """Cut after the first statement, with the block that belongs to it (deeper lines, open
    brackets, ``else`` and the like); not where the cursor begins a block."""
    lines = prefix.rstrip(" \t").split("\n")
    line_before, above = (
        prefix[prefix.rfind("\n") + 1 :],
        next((line for line in reversed(lines[:-1]) if line.strip()), ""),
    )
    if not line_before.strip() and above.rstrip().endswith(_OPENS_BLOCK):
        return lambda _text: None

    def rule(text: str) -> int | None:
        written = (line_before + text).split("\n")
        first = next((n for n, line in enumerate(written) if line.strip()), len(written))
        if first >= len(written) - 1:
            return None
        level, depth, offset = indentation(written[first]), 0, -len(line_before)
        for number, line in enumerate(written):
            # The last line is still being written: it is judged once it has a word.
            if number > first and line.strip() and depth <= 0 and indentation(line) <= level:
                last = number == len(written) - 1
                if not _continues(line) and not (last and _may_continue(line)):
                    return len(text[:offset].rstrip())
            depth += sum(line.count(opens) - line.count(closes) for opens, closes in _PAIRS)
            offset += len(line) + 1
        return None

    return rule


_OPENS_BLOCK = (":", "{", "(", "[")
_CONTINUING = ("else", "elif", "except", "finally", "catch", "while", "then", "fi", "done", "end")
_WORD = re.compile(r"\w+")
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"))


def _continues(line: str) -> bool:
    word = _WORD.match(line.strip())
    return line.strip()[:1] in _CLOSERS or (word is not None and word.group() in _CONTINUING)


def _may_continue(line: str) -> bool:
    """Return True if a line may yet become one that continues a statement."""
    return any(word.startswith(line.strip()) for word in _CONTINUING)


def _only_closes(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and all(character in _CLOSERS + ">;,:" for character in stripped)
