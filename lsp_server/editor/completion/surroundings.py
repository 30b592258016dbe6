"""The brackets around the cursor, and which closing bracket of a text closes none of them. Without
a grammar a bracket counts as too many only where it is under every reading."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsp_server.text.syntax.brackets import OPENER_OF, Bracket, unpaired
from lsp_server.text.syntax.incremental_brackets import Around, IncrementalBrackets

SURROUNDING_CHARACTERS = 6_000
"""Characters before and after the cursor that are looked through without a grammar."""

_CLOSER = re.compile(r"[)\]}]")
_BRACKET = re.compile(r"[()\[\]{}]")
_DOUBLE = r"\"(?:\\.|[^\"\\\n])*\""
_SINGLE = r"'(?:\\.|[^'\\\n])*'"
_COMMENT = r"(?:#|//|--|;|%)[^\n]*"
_PROSE = (
    r"(?m:^[ \t]*[^\s()\[\]{}]{1,30}\))"  # a) of a list or of a shell's case
    r"|[:;]-?[()\[\]]"  # :)
    r"|(?<!\w)[\[(][^()\[\]\n]*[\])]"  # [0, 1)
)
_READINGS = tuple(
    re.compile("|".join(quoted))
    for quoted in (
        ["(?!)"],
        [_DOUBLE],
        [_DOUBLE, _SINGLE],
        [_DOUBLE, _SINGLE, _COMMENT],
        [_DOUBLE, _SINGLE, _COMMENT, _PROSE],
    )
)
"""What may be no bracket of code, where nothing is known of the language."""
_ONLY_CLOSES = re.compile(r"[^\n]*(?:\n[\s)\]};,]*$)*", re.MULTILINE)
"""The rest of the line, and the lines below it that only close brackets."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What comes before and after a text that is offered."""

    prefix: str
    suffix: str
    syntax: IncrementalBrackets | None = None

    def too_many(self, text: str) -> int | None:
        """Where the first closing bracket of ``text`` is that closes nothing, or closes what
        the suffix closes already; None where all fit."""
        if _CLOSER.search(text) is None:
            return None
        if self.syntax is not None:
            whole = self.prefix + text + self.suffix
            end = len(self.prefix) + len(text)
            around = self.syntax.around(whole, len(self.prefix), end)
            if around is not None:
                return self._too_many(around, False)
        hidden = len(self.prefix) > SURROUNDING_CHARACTERS
        places = [self._too_many(self._read(text, quoted), hidden) for quoted in _READINGS]
        found = [place for place in places if place is not None]
        if len(found) < len(places):
            return None
        place = max(found)
        line = text[text.rfind("\n", 0, place) + 1 :].split("\n", 1)[0]
        is_closed = "\n" not in text[:place] or not line.strip(" \t)]};,")
        return place if is_closed else None

    def needs(self, part: str, text: str) -> bool:
        """Whether ``part`` of ``text`` closes what nothing else closes."""
        if ">" in part and "<" not in part and text.count("<") == text.count(">"):
            return True
        return bool(unpaired(_BRACKET.findall(part)).closing) and self.too_many(text) is None

    def _too_many(self, around: Around, hidden: bool) -> int | None:
        """The first closing bracket from which on more is closed than is open; ``b) + f(c`` fits
        before ``)``. Where ``hidden``, more may be open than is seen."""
        stack = list(around.open_before)
        surplus = 0
        allowed = _unclosable(stack, around.closed_after)
        first: int | None = None
        for place, sign in around.inside:
            opener = OPENER_OF.get(sign)
            if opener is None:
                stack.append(sign)
            elif stack and stack[-1] == opener:
                stack.pop()
            elif sign == "}" and opener in stack and self._is_far(stack[-1]):
                # Something above was left open. That is no matter of this text.
                while stack.pop() != opener:
                    pass
            elif stack or not hidden:
                surplus += 1
            if surplus + _unclosable(stack, around.closed_after) <= allowed:
                first = None
            elif first is None:
                first = place
        return first

    def _is_far(self, opener: str) -> bool:
        line = self.prefix[self.prefix.rfind("\n") + 1 :]
        return opener not in unpaired(_BRACKET.findall(line)).opening

    def _read(self, text: str, quoted: re.Pattern[str]) -> Around:
        """The brackets of plain text. Before its window any bracket may be open."""
        prefix = self.prefix[-SURROUNDING_CHARACTERS:]
        closes = _ONLY_CLOSES.match(self.suffix[:SURROUNDING_CHARACTERS])
        suffix = closes[0] if closes else ""
        whole = quoted.sub(lambda found: " " * len(found[0]), prefix + text + suffix)
        start, end = len(prefix), len(prefix) + len(text)
        signs = [Bracket(found.start(), found[0]) for found in _BRACKET.finditer(whole)]
        return Around(
            unpaired(one.sign for one in signs if one.place < start).opening,
            [Bracket(place - start, sign) for place, sign in signs if start <= place < end],
            unpaired(one.sign for one in signs if one.place >= end).closing,
        )


def _unclosable(stack: list[str], closers: str) -> int:
    return len(unpaired([*stack, *closers]).closing)
