"""Brackets of a document that is being typed, kept as stretches of some forty lines, each with a
syntax tree of its own; only what changed is parsed again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from lsp_server.text.syntax.brackets import Bracket, Unpaired, code_brackets, unpaired
from lsp_server.text.syntax.languages import grammar_of
from lsp_server.text.syntax.roles import Role
from lsp_server.text.syntax.tree import RolePiece, SyntaxTree
from repo_index.common_ends import common_ends

USUAL = 1_000
LONGEST = 2 * USUAL
"""Characters of a stretch; a longer one is divided where that is possible."""
LONGEST_PARSED = 64_000
"""So much is parsed at once where no place to divide is found."""
LONGEST_DOCUMENT = 400_000
"""Of longer documents no syntax is kept."""

_LINE_START = re.compile(r"(?<=\n)(?=[^\n])")
_BEGINS = re.compile(r"[\"']{3}|\"|/\*|<!--|\{-|--\[\[|`(?=[^`\n]*$)", re.MULTILINE)
_BLANKS = re.compile(r"[ \t]*")


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a document with its brackets, counted from its start."""

    text: str
    brackets: list[Bracket]
    unpaired: Unpaired


class Around(NamedTuple):
    """Brackets around and inside of a range: open before it, inside, closed after it."""

    open_before: str
    inside: list[Bracket]
    """Offsets are counted from the range's start."""
    closed_after: str


class IncrementalBrackets:
    """The brackets of one document. Each call tells the text as it is now."""

    def __init__(self, grammar: str) -> None:
        self._grammar = grammar
        self._text = ""
        self._stretches: list[Stretch] = []

    @classmethod
    def of(cls, language_id: str, path: str = "") -> IncrementalBrackets | None:
        """For a language; None where it has no grammar."""
        grammar = grammar_of(language_id, path)
        return cls(grammar) if grammar else None

    def around(self, text: str, start: int, end: int) -> Around | None:
        """Return the brackets around ``start`` to ``end``; None in a text that is too long."""
        if len(text) > LONGEST_DOCUMENT:
            self._text, self._stretches = "", []
            return None
        self._follow(text)
        before: list[str] = []
        inside: list[Bracket] = []
        after: list[str] = []
        offset = 0
        for stretch in self._stretches:
            reach = offset + len(stretch.text)
            if reach <= start:
                before += stretch.unpaired
            elif offset >= end:
                after += stretch.unpaired
            else:
                for bracket_offset, sign in stretch.brackets:
                    if bracket_offset + offset < start:
                        before.append(sign)
                    elif bracket_offset + offset < end:
                        inside.append(Bracket(bracket_offset + offset - start, sign))
                    else:
                        after.append(sign)
            offset = reach
        opening = unpaired(chain.from_iterable(before)).opening
        return Around(opening, inside, unpaired(chain.from_iterable(after)).closing)

    def _follow(self, text: str) -> None:
        """Parse what differs from the text of the last call."""
        old = self._text
        if text == old:
            return
        same_start, same_end = common_ends(old, text)
        unchanged_before, unchanged_after = 0, 0
        first, last = 0, len(self._stretches)
        while first < last and unchanged_before + len(self._stretches[first].text) <= same_start:
            unchanged_before += len(self._stretches[first].text)
            first += 1
        while last > first and unchanged_after + len(self._stretches[last - 1].text) <= same_end:
            unchanged_after += len(self._stretches[last - 1].text)
            last -= 1
        if first == last and first:
            # The change is between two stretches, or at the end: it goes to the one before.
            first -= 1
            unchanged_before -= len(self._stretches[first].text)
        changed = text[unchanged_before : len(text) - unchanged_after]
        self._stretches[first:last] = self._renewed(changed, self._stretches[first:last])
        self._text = text

    def _renewed(self, text: str, old: list[Stretch]) -> list[Stretch]:
        """Return the stretches of a changed part; those between two changes are taken over."""
        stretches: list[Stretch] = []
        done = 0
        for stretch in old if len(old) > 2 else []:
            offset = text.find(stretch.text, done)
            if offset >= 0:
                stretches += _stretches(text[done:offset], self._grammar)
                stretches.append(stretch)
                done = offset + len(stretch.text)
        return stretches + _stretches(text[done:], self._grammar)


def _stretches(text: str, grammar: str) -> list[Stretch]:
    """Divide a text where neither a comment, a string nor another language is torn."""
    stretches: list[Stretch] = []
    size = LONGEST
    while text:
        head = text[:size]
        tree = SyntaxTree.parsed(head, grammar)
        pieces = tree.pieces()
        brackets = code_brackets(tree, pieces)
        if len(head) < len(text) or len(text) > LONGEST:
            undivided = [
                (piece.start, piece.end) for piece in pieces if piece.role is not Role.TEXT
            ]
            undivided += [(injection.start, injection.end) for injection in tree.injections()]
            end = _place_to_divide(head[: _loose(head, pieces)], undivided)
            if end == 0 and len(head) < len(text) and size < LONGEST_PARSED:
                size *= 2
                continue
        else:
            end = 0
        end = end or len(head)
        brackets = [bracket for bracket in brackets if bracket.place < end]
        signs = (bracket.sign for bracket in brackets)
        stretches.append(Stretch(head[:end], brackets, unpaired(signs)))
        text = text[end:]
        size = LONGEST
    return stretches


def _loose(text: str, pieces: list[RolePiece]) -> int:
    """Return where a string or comment begins that a part of a document does not end; else its end.
    The parser takes what follows for code."""
    offset = 0
    for start, end in [*((piece.start, piece.end) for piece in pieces), (len(text),) * 2]:
        match = _BEGINS.search(text, offset, start)
        if match is not None:
            return match.start()
        offset = end
    return len(text)


def _place_to_divide(text: str, undivided: list[tuple[int, int]]) -> int:
    """Return the least indented line start that tears nothing of ``undivided``, or 0."""
    best, least = 0, 1_000_000
    for match in _LINE_START.finditer(text, USUAL // 2, len(text) - USUAL // 4):
        offset = match.start()
        blanks = _BLANKS.match(text, offset)
        indentation = len(blanks[0]) if blanks else 0
        if indentation <= least and not any(start < offset < end for start, end in undivided):
            best, least = offset, indentation
    return best
