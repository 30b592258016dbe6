"""Brackets of code: where they are, which are open at a position, which are closed after it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from lsp_server.text.syntax.languages import grammar_of
from lsp_server.text.syntax.tree import RolePiece, SyntaxTree

OPENER_OF = {")": "(", "]": "[", "}": "{"}

_BRACKET = re.compile(r"[()\[\]{}]")
_BRACE = re.compile(r"[{}]")
_BRACES_ALONE = {"bibtex", "latex"}
"""Grammars in which a round or square bracket needs no partner."""
_NO_PAIRS = {"vim"}
"""Grammars in which patterns are bare, with any bracket in them."""
_CASE_PATTERN = re.compile(r"[^\s(][^(]*\Z")
"""Before the ``)`` of a shell's ``case`` pattern: text on its line, and no bracket."""


class Bracket(NamedTuple):
    """A bracket and where it is."""

    place: int
    sign: str


class Unpaired(NamedTuple):
    """The brackets of a text that have no partner: closing ones, then opening ones."""

    closing: str
    opening: str


def code_brackets(tree: SyntaxTree, pieces: list[RolePiece]) -> list[Bracket]:
    """Return a tree's brackets outside of ``pieces``, its comments, strings and prose."""
    if tree.grammar in _NO_PAIRS:
        return []
    sign = _BRACE if tree.grammar in _BRACES_ALONE else _BRACKET
    brackets: list[Bracket] = []
    offset = 0
    for start, end in [*((piece.start, piece.end) for piece in pieces), (len(tree.text),) * 2]:
        matches = sign.finditer(tree.text, offset, start)
        brackets += [Bracket(match.start(), match[0]) for match in matches]
        offset = end
    if tree.grammar == "bash":
        return _without_case_patterns(tree.text, brackets, 0, len(tree.text))
    for start, end, language in tree.injections() if brackets else []:
        grammar = grammar_of(language)
        if not grammar:
            # Nobody knows whether that is code.
            brackets = [bracket for bracket in brackets if not start <= bracket.place < end]
        elif grammar == "bash":
            brackets = _without_case_patterns(tree.text, brackets, start, end)
    return brackets


def _without_case_patterns(
    text: str, brackets: list[Bracket], start: int, end: int
) -> list[Bracket]:
    """Return brackets without those of a shell's ``case`` patterns between two offsets."""

    def is_case_pattern(offset: int, sign: str) -> bool:
        if sign != ")" or not start <= offset < end:
            return False
        line = text[text.rfind("\n", 0, offset) + 1 : offset].lstrip()
        return _CASE_PATTERN.match(line) is not None

    return [bracket for bracket in brackets if not is_case_pattern(*bracket)]


def unpaired(signs: Iterable[str]) -> Unpaired:
    """Take out the pairs. A brace is stronger than what is open inside of it."""
    closing: list[str] = []
    opening: list[str] = []
    for sign in signs:
        opener = OPENER_OF.get(sign)
        if opener is None:
            opening.append(sign)
        elif not opening:
            closing.append(sign)
        elif opening[-1] == opener:
            opening.pop()
        elif sign == "}" and "{" in opening:
            while opening.pop() != "{":
                pass
    return Unpaired("".join(closing), "".join(opening))
