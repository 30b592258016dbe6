"""Cuts what must not be shown from the model's text: hidden characters, loops, what is after
the cursor already, closing brackets that close nothing, trailing blanks."""

from __future__ import annotations

import re

from lsp_server.editor.completion.unmatched_brackets import SURROUNDING_CHARACTERS, Surroundings
from lsp_server.text.documents.document import with_line_feeds
from lsp_server.text.documents.invisible_characters import first_hidden
from lsp_server.text.syntax.brackets import Unpaired, unpaired
from lsp_server.text.syntax.incremental_brackets import IncrementalBrackets

_CLOSES = ")]}\"'`>;,:"
_SEPARATORS = ",; \t"
_ENDING = re.compile(r"[\s,;)\]}]*(?:\s(?:#|//|--|/\*|<!--|;|%).*)?")
"""What may come after a line that is the same otherwise."""
_KEY = re.compile(r"""\s*["']?[\w$.-]+["']?\??\s*(?::(?!:)|=>|=(?!=))\s*\S""")

REPEATS = 3
"""Lines that come one after another so often, up to the end, are a loop."""
REPEATS_ANYWHERE = 12
"""So often is a loop, whatever follows."""
LONGEST_UNIT = 12
"""Lines."""

_PHRASES = re.compile(r"(?P<phrase>.{3,40}?)(?P=phrase){3,}")
_BRACKETS = re.compile(r"[()\[\]{}]")


def shown_text(
    text: str, prefix: str, suffix: str, syntax: IncrementalBrackets | None = None
) -> str:
    """Return the part of ``text`` to offer between ``prefix`` and ``suffix``; may be empty.
    ``syntax``: the brackets of the document, for a language with a grammar."""
    text = with_line_feeds(text)
    if not text.isascii():
        text = text[: first_hidden(text, prefix + suffix)]
    text = without_loop(text)
    if is_echo(text, prefix):
        return ""
    around = Surroundings(prefix, suffix, syntax)
    text = without_suffix(text, around)
    text = text[: around.too_many(text)]
    text = _without_trailing_blanks(text, suffix)
    if not text.strip():
        return ""
    return text


def without_suffix(text: str, around: Surroundings) -> str:
    """Take off what is after the cursor already, on its line and on the lines below."""
    rest_of_line, *below = around.suffix[:SURROUNDING_CHARACTERS].split("\n")
    following = _filled(below)
    text = _without_line_rest(text, rest_of_line.rstrip("\r"), around)
    if not following:
        return text
    line_before = around.prefix[around.prefix.rfind("\n") + 1 :]
    lines = text.split("\n")
    new_lines = [line_before + lines[0], *lines[1:]]
    for number in range(1, len(lines)):
        # The line below the cursor comes again: what was written goes up to there.
        written = _filled(new_lines[number:])
        if not written or not (_starts_same(written, following) or _is_entry(written, following)):
            continue
        if _are_rows([*_filled(new_lines[:number])[-1:], *written]):
            continue
        if not around.needs("\n".join(lines[number:]), text):
            return "\n".join(lines[:number]).rstrip("\n")
    if lines[0].strip() and not rest_of_line.strip():
        written = _filled(new_lines)
        doubled = written == following[:1] or _starts_same(written, following)
        doubled = doubled or _is_entry(written, following)
        above = _filled(around.prefix[-SURROUNDING_CHARACTERS:].split("\n")[:-1])
        if doubled and not _are_rows([*above[-1:], *written]):
            return text if around.needs(text, text) else ""
    return text


def _filled(lines: list[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()]


def _are_rows(lines: list[str]) -> bool:
    """Return True if the same line occurs several times, so that one more is no mistake."""
    return len(lines) > 1 and len({line.rstrip(_SEPARATORS) for line in lines}) == 1


def _is_same(line: str, other: str) -> bool:
    """Return True if two lines are equal but for separators at their ends, brackets that close
    after one of them, and comments."""
    first, second = line.rstrip(_SEPARATORS), other.rstrip(_SEPARATORS)
    return first == second or (
        second.startswith(first) and _ENDING.fullmatch(second, len(first)) is not None
    )


def _is_entry(written: list[str], following: list[str]) -> bool:
    """Return True if a key gets its value, which is on the next line."""
    return _KEY.match(written[0]) is not None and _starts_same(written[:1], following)


def _starts_same(written: list[str], following: list[str]) -> bool:
    """The last line written may be cut short."""
    count = min(len(written), len(following))
    if not all(map(_is_same, written[: count - 1], following[: count - 1])):
        return False
    last = written[count - 1]
    if _is_same(last, following[count - 1]):
        # A lone bracket or `else:` may well come twice; a longer line or an end tag may not.
        return count > 1 or len(last.strip()) > 6 or last.lstrip().startswith("</")
    return count > 1 and len(last.strip()) > 3 and following[count - 1].startswith(last)


def _without_line_rest(text: str, rest: str, around: Surroundings) -> str:
    if not rest.strip():
        return text
    line_before = around.prefix[around.prefix.rfind("\n") + 1 :]
    first, separator, more = text.partition("\n")
    first = first.rstrip()
    for size in range(len(rest), 0, -1):
        head = rest[:size].rstrip()
        if not head.strip() or not first.endswith(head):
            continue
        if size < len(rest) and not all(character in _CLOSES for character in rest[:size]):
            continue
        if head[0] in "\"'`" and (line_before + first).count(head[0]) % 2:
            # The text's last quote opens what the rest of the line closes.
            continue
        if not around.needs(head, text):
            return first[: len(first) - len(head)]
    if separator and more and rest.strip(" \t" + _CLOSES):
        # More lines would tear the rest of the line off what belongs before it.
        return text.partition("\n")[0]
    return text


def _without_trailing_blanks(text: str, suffix: str) -> str:
    lines = [line.rstrip() if number else line for number, line in enumerate(text.split("\n"))]
    text = "\n".join(lines)
    if not suffix.split("\n", 1)[0].strip():
        text = text.rstrip()
    return text


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
