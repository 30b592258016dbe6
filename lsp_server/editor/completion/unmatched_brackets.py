"""The brackets around the cursor, and which closing bracket of a text closes none of them. Without
a grammar a bracket counts as too many only where it is under every reading."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.text.syntax.brackets import OPENER_OF, Bracket, unpaired
from lsp_server.text.syntax.incremental_brackets import Around, IncrementalBrackets

SURROUNDING_CHARACTERS = 6_000
"""Characters before and after the cursor that are looked through without a grammar."""

_CLOSER = re.compile(r"[)\]}]")
_BRACKET = re.compile(r"[()\[\]{}]")
_END_TAG = re.compile(r"</([\w.:-]+)")
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

DOCUMENTS = 64
"""So many are kept; the one that was seen first goes first."""
PARSED_AT_ONCE = 20_000
"""Characters. A longer document is parsed beside the event loop when it is seen first."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The text before and after an offered text."""

    prefix: str
    suffix: str
    syntax: IncrementalBrackets | None = None

    def too_many(self, text: str) -> int | None:
        """Return the offset of the first bracket of ``text`` that closes nothing, or closes a
        bracket that the suffix closes already; None if all fit."""
        if _CLOSER.search(text) is None:
            return None
        if self.syntax is not None:
            text_around = self.prefix + text + self.suffix
            end = len(self.prefix) + len(text)
            around = self.syntax.around(text_around, len(self.prefix), end)
            if around is not None:
                return self._too_many(around, False)
        hidden = len(self.prefix) > SURROUNDING_CHARACTERS
        offsets = [self._too_many(self._read(text, quoted), hidden) for quoted in _READINGS]
        excess = [offset for offset in offsets if offset is not None]
        if len(excess) < len(offsets):
            return None
        offset = max(excess)
        line = text[text.rfind("\n", 0, offset) + 1 :].split("\n", 1)[0]
        is_closed = "\n" not in text[:offset] or not line.strip(" \t)]};,")
        return offset if is_closed else None

    def needs(self, piece: str, text: str) -> bool:
        """Return True if only ``piece`` of ``text`` closes a bracket or a tag."""
        for tag in _END_TAG.findall(piece):
            joined = f"{self.prefix}{text}{self.suffix}"
            opened, closed = (
                len(re.findall(rf"<{sign}{re.escape(tag)}(?![\w.:-])", joined))
                for sign in ("", "/")
            )
            if opened >= closed:
                return True
        if ">" in piece and "<" not in piece and text.count("<") == text.count(">"):
            return True
        return bool(unpaired(_BRACKET.findall(piece)).closing) and self.too_many(text) is None

    def _too_many(self, around: Around, hidden: bool) -> int | None:
        """Return the first closing bracket from which on more is closed than is open; ``b) + f(c``
        fits before ``)``. Where ``hidden``, more may be open than is seen."""
        stack = list(around.open_before)
        surplus = 0
        allowed = _unclosable(stack, around.closed_after)
        first: int | None = None
        for offset, sign in around.inside:
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
                first = offset
        return first

    def _is_far(self, opener: str) -> bool:
        line = self.prefix[self.prefix.rfind("\n") + 1 :]
        return opener not in unpaired(_BRACKET.findall(line)).opening

    def _read(self, text: str, quoted: re.Pattern[str]) -> Around:
        """Return the brackets of plain text. Before its window any bracket may be open."""
        prefix = self.prefix[-SURROUNDING_CHARACTERS:]
        closes = _ONLY_CLOSES.match(self.suffix[:SURROUNDING_CHARACTERS])
        suffix = closes[0] if closes else ""
        text_around = quoted.sub(lambda match: " " * len(match[0]), prefix + text + suffix)
        start, end = len(prefix), len(prefix) + len(text)
        signs = [Bracket(match.start(), match[0]) for match in _BRACKET.finditer(text_around)]
        return Around(
            unpaired(bracket.sign for bracket in signs if bracket.place < start).opening,
            [Bracket(offset - start, sign) for offset, sign in signs if start <= offset < end],
            unpaired(bracket.sign for bracket in signs if bracket.place >= end).closing,
        )


def _unclosable(stack: list[str], closers: str) -> int:
    return len(unpaired([*stack, *closers]).closing)


class DocumentBrackets:
    """Syntax by document and language. The event loop owns it."""

    def __init__(self) -> None:
        self._brackets: dict[tuple[str, str], IncrementalBrackets | None] = {}

    def syntax_of(self, ask: CompletionRequest) -> IncrementalBrackets | None:
        """Return the brackets of a document; None without a grammar, and while a long document is
        parsed for the first time."""
        key = (ask.document, ask.language)
        if key not in self._brackets:
            while len(self._brackets) >= DOCUMENTS:
                del self._brackets[next(iter(self._brackets))]
            self._brackets[key] = None
            self._begin(key, ask)
        return self._brackets[key]

    def forget(self, document: str) -> None:
        """A document was closed."""
        self._brackets = {
            key: brackets for key, brackets in self._brackets.items() if key[0] != document
        }

    def _begin(self, key: tuple[str, str], ask: CompletionRequest) -> None:
        if len(ask.prefix) + len(ask.suffix) > PARSED_AT_ONCE:
            parsing = asyncio.get_running_loop().run_in_executor(None, _parsed, ask)
            parsing.add_done_callback(lambda done: self._arrived(key, done))
        else:
            self._brackets[key] = _parsed(ask)

    def _arrived(
        self, key: tuple[str, str], done: asyncio.Future[IncrementalBrackets | None]
    ) -> None:
        if key in self._brackets and not done.cancelled():
            self._brackets[key] = done.result()


def _parsed(ask: CompletionRequest) -> IncrementalBrackets | None:
    brackets = IncrementalBrackets.of(ask.language, ask.path)
    if brackets is not None:
        brackets.around(ask.prefix + ask.suffix, 0, 0)
    return brackets
