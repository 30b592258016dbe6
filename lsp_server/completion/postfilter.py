"""What of the model's text is shown. Pure functions over text, held by golden tests.

In this order: hidden characters and repetitions are cut, what stands after the cursor already is
taken off, brackets that close nothing are cut, trailing blanks go.
"""

from __future__ import annotations

import re

from lsp_server.hidden import first_hidden

OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {closer: opener for opener, closer in OPENERS.items()}
LOOK_BACK_LINES = 60
LOOK_BACK_CHARACTERS = 6_000
SHORTEST_REPEAT = 3
"""Lines that stand one after another so often are a loop."""

_QUOTED = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*")


def shown_text(text: str, prefix: str, suffix: str) -> str:
    """What to offer of ``text`` between ``prefix`` and ``suffix``; empty when nothing is left."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii():
        text = text[: first_hidden(text, prefix + suffix)]
    # What is far away says nothing, and a long document would hold up the event loop.
    prefix, suffix = prefix[-LOOK_BACK_CHARACTERS:], suffix[:LOOK_BACK_CHARACTERS]
    text = cut_repetition(text, prefix)
    text = without_suffix(text, suffix)
    text = cut_unbalanced(text, prefix, suffix)
    text = _without_trailing_blanks(text, suffix)
    if not text.strip():
        return ""
    return text


def cut_repetition(text: str, prefix: str) -> str:
    """Cut a loop: the same lines over and over, or the lines before the cursor over again."""
    lines = text.split("\n")
    for size in (1, 2, 3):
        for start in range(len(lines) - size * SHORTEST_REPEAT + 1):
            unit = lines[start : start + size]
            if not any(line.strip() for line in unit):
                continue
            repeats = 1
            while lines[start + repeats * size : start + (repeats + 1) * size] == unit:
                repeats += 1
            if repeats >= SHORTEST_REPEAT:
                return "\n".join(lines[: start + size])
    return _cut_phrase_loop(_cut_echo(text, prefix))


def _cut_echo(text: str, prefix: str) -> str:
    """Nothing, when the text is the last lines before the cursor once more."""
    before = [line.strip() for line in prefix.split("\n")[-8:-1] if line.strip()]
    written = [line.strip() for line in text.split("\n") if line.strip()]
    size = len(written)
    if size >= 2 and any(before[i : i + size] == written for i in range(len(before))):
        return ""
    return text


def _cut_phrase_loop(text: str) -> str:
    """Cut within a line after the first of four equal phrases in a row."""
    found = re.search(r"(.{3,40}?)\1{3,}", text)
    if found is None or not re.search(r"\w", found.group(1)):
        return text
    return text[: found.start() + len(found.group(1))]


def without_suffix(text: str, suffix: str) -> str:
    """Take off what stands after the cursor already, on its line and on the lines below."""
    rest_of_line = suffix.split("\n", 1)[0].rstrip("\r")
    following = [line.rstrip() for line in suffix.split("\n")[1:] if line.strip()]
    text = _without_line_rest(text, rest_of_line)
    if not following:
        return text
    lines = text.split("\n")
    for number in range(1, len(lines)):
        # The line below the cursor comes again: what was written goes up to there.
        written = [line.rstrip() for line in lines[number:] if line.strip()]
        if written and _starts_same(written, following):
            return "\n".join(lines[:number]).rstrip("\n")
    if not rest_of_line.strip() and lines[0].strip() and lines[0].strip() == following[0].strip():
        return ""
    return text


def _starts_same(written: list[str], following: list[str]) -> bool:
    """The last line written may be cut short."""
    count = min(len(written), len(following))
    if written[: count - 1] != following[: count - 1]:
        return False
    last = written[count - 1]
    if last == following[count - 1]:
        # A lone closing bracket or `else:` may well come twice; a longer line may not.
        return count > 1 or len(last.strip()) > 6
    return count > 1 and len(last.strip()) > 3 and following[count - 1].startswith(last)


def _without_line_rest(text: str, rest: str) -> str:
    """Take the rest of the cursor's line off the end of the text's first line."""
    if not rest.strip():
        return text
    first, separator, more = text.partition("\n")
    for size in range(len(rest), 0, -1):
        if first.rstrip().endswith(rest[:size].rstrip()) and rest[:size].strip():
            if size < len(rest) and not all(character in ")]}\"'>;,:" for character in rest[:size]):
                continue
            return first.rstrip()[: len(first.rstrip()) - len(rest[:size].rstrip())]
    # More lines would tear the rest of the line off what belongs before it.
    return first if separator and more else text


def cut_unbalanced(text: str, prefix: str, suffix: str) -> str:
    """Cut at a bracket that closes nothing that is open."""
    open_before = _open_brackets("\n".join(prefix.split("\n")[-LOOK_BACK_LINES:]))
    line_rest = suffix.split("\n", 1)[0]
    for character in _QUOTED.sub("", line_rest):
        # Brackets that the rest of the line closes are not ours to close.
        if character in CLOSERS and open_before and open_before[-1] == CLOSERS[character]:
            open_before.pop()
    stack = list(open_before)
    hidden = [(found.start(), found.end()) for found in _QUOTED.finditer(text)]
    for place, character in enumerate(text):
        if any(start <= place < end for start, end in hidden):
            continue
        if character in OPENERS:
            stack.append(character)
        elif character in CLOSERS:
            if not stack or stack[-1] != CLOSERS[character]:
                return text[:place]
            stack.pop()
    return text


def _open_brackets(text: str) -> list[str]:
    stack: list[str] = []
    for character in _QUOTED.sub("", text):
        if character in OPENERS:
            stack.append(character)
        elif character in CLOSERS and stack and stack[-1] == CLOSERS[character]:
            stack.pop()
    return stack


def _without_trailing_blanks(text: str, suffix: str) -> str:
    lines = [line.rstrip() if number else line for number, line in enumerate(text.split("\n"))]
    text = "\n".join(lines)
    if not suffix.split("\n", 1)[0].strip():
        text = text.rstrip()
    return text


def wants_several_lines(line_before: str, line_after: str) -> bool:
    """Whether a block may be written here: on an empty line, or after what opens a block."""
    if line_after.strip(" \t\r)]}>;,:\"'"):
        return False
    before = line_before.rstrip()
    return not before.strip() or before.endswith((":", "{", "(", "[", "=>", "->"))
