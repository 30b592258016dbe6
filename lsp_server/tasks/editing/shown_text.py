"""Prepares a selection for the model: line ends, a byte order mark, blanks at ends of lines and
control characters are left out; what its vocabulary cannot carry is shown as ``x1`` or ``<1>``."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lsp_server.text.documents.document import line_end, split_lines, with_line_feeds

_BOM = "\ufeff"
_SEPARATORS = "\u2028\u2029"
_BIDI = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_UNSHOWN = rf"\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff{_BOM}{_SEPARATORS}{_BIDI}"
_HEAD = re.compile(rf"[{_UNSHOWN}]*")
_TAIL = re.compile(rf"[ \t{_UNSHOWN}]*\Z")
_IS_UNSHOWN = re.compile(rf"[{_UNSHOWN}]")
_NOT_READ = re.compile(rf"(?!\n)[{_UNSHOWN}]")
_BLANKS = re.compile(r"[ \t]+")
_PLAIN = re.compile(r"[\t\x20-\x7e]*")


@dataclass(frozen=True, slots=True)
class Piece:
    """A word, a run of blanks or a character: as the model reads it and as it is."""

    shown: str
    original: str


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line in parts; ``original`` is all of them but for the line's end."""

    head: str
    """Characters before the indentation that are not shown."""
    indent: str
    pieces: tuple[Piece, ...]
    tail: str
    """Blanks and characters at the end that are not shown."""
    end: str
    """The line end, empty on the last line."""
    shown: str

    @property
    def original(self) -> str:
        """The line as it is, without its end."""
        return self.head + self.indent + "".join(each.original for each in self.pieces) + self.tail


class ShownText:
    """``text`` is what the model reads; ``lines`` say what each line of it stands for.

    legible: whether the model carries a piece of text. The same text has the same
    stand-in everywhere, in the instruction too.
    """

    def __init__(
        self,
        original: str,
        instruction: str = "",
        *,
        legible: Callable[[str], bool] = lambda text: True,
    ) -> None:
        self.bom = _BOM if original.startswith(_BOM) else ""
        self._legible = legible
        self._stand_ins: dict[str, str] = {}
        self._begin_word, self._begin_mark = _unused(original + "\n" + instruction)
        self._numbers = itertools.count(1)
        self.lines = [self._line(line) for line in split_lines(original[len(self.bom) :])]
        self.text = "\n".join(line.shown for line in self.lines)
        self.instruction = "\n".join(
            "".join(piece.shown for piece in self._pieces(line.rstrip("\r\n")))
            for line in split_lines(instruction)
        )
        self.meanings = {stand_in: original for original, stand_in in self._stand_ins.items()}
        """By stand-in, what it stands for."""
        self._like_one = re.compile(
            rf"(?<!\w){self._begin_word}\d\w*|{self._begin_mark}\d[^>\s]*>?", re.ASCII
        )

    def looks_like_stand_in(self, piece: str) -> bool:
        """Return True if a piece is a stand-in, or a misspelt one."""
        return bool(self.meanings) and self._like_one.fullmatch(piece) is not None

    def cut(self, text: str) -> list[str]:
        """Return a line of the model's without its indentation, in pieces like those of
        ``lines``."""
        if not self.meanings:
            return _cut(text)
        pieces: list[str] = []
        offset = 0
        for match in self._like_one.finditer(text):
            pieces += [*_cut(text[offset : match.start()]), match.group()]
            offset = match.end()
        return pieces + _cut(text[offset:])

    def _line(self, line: str) -> ShownLine:
        end = line_end(line)
        body = line[: len(line) - len(end)]
        tail_at = _first(_TAIL, body).start()
        body, tail = body[:tail_at], body[tail_at:]
        head = _first(_HEAD, body).group()
        match = _BLANKS.match(body, len(head))
        indent = match.group() if match else ""
        pieces = tuple(self._pieces(body[len(head) + len(indent) :]))
        line_shown = indent + "".join(piece.shown for piece in pieces)
        return ShownLine(head, indent, pieces, tail, end, line_shown)

    def _pieces(self, body: str) -> Iterator[Piece]:
        """Yield the pieces of a line. Illegible ones next to each other are one, with blanks
        between."""
        pending, blanks = "", ""
        for text in [*_cut(body), ""]:
            if text and not self._is_legible(text):
                pending, blanks = pending + blanks + text, ""
            elif pending and text and not text.strip(" "):
                blanks += text
            else:
                if pending:
                    yield self._stand_in(pending)
                if blanks:
                    yield Piece(blanks, blanks)
                pending = blanks = ""
                if text:
                    yield Piece(text, text)

    def _is_legible(self, text: str) -> bool:
        is_shown = _IS_UNSHOWN.search(text) is None
        return _PLAIN.fullmatch(text) is not None or (is_shown and self._legible(text))

    def _stand_in(self, text: str) -> Piece:
        stand_in = self._stand_ins.get(text)
        if stand_in is None:
            number = next(self._numbers)
            is_word = all(map(_in_word, text))
            stand_in = f"{self._begin_word}{number}" if is_word else f"{self._begin_mark}{number}>"
            self._stand_ins[text] = stand_in
        return Piece(stand_in, text)


def readable(text: str) -> str:
    """Return text around a selection: lines that end in ``\\n``, without what is not shown."""
    unix = with_line_feeds(text)
    return unix if unix.isprintable() else _NOT_READ.sub("", unix)


def _unused(text: str) -> tuple[str, str]:
    """Return beginnings of stand-ins, for words and for others, that no text here begins with."""
    words = itertools.chain("xvwzuq", (f"x{'_' * n}" for n in itertools.count(1)))
    marks = (f"<{'~' * n}" for n in itertools.count())
    word = next(each for each in words if not re.search(rf"(?<!\w){each}\d", text, re.ASCII))
    mark = next(each for each in marks if not re.search(rf"{each}\d", text))
    return word, mark


def _cut(text: str) -> list[str]:
    """Return words, runs of blanks, runs of other characters beyond ASCII, and single
    characters."""
    if text.isascii():
        return _ASCII.findall(text)
    pieces: list[str] = []
    for kind, run in itertools.groupby(text, _kind):
        piece = "".join(run)
        pieces += list(piece) if kind == _MARK else [piece]
    return pieces


_ASCII = re.compile(r"[ \t]+|\w+|[^ \t\w]", re.ASCII)
_WORD, _BLANK, _MARK, _OTHER = range(4)


def _kind(character: str) -> int:
    if _in_word(character):
        return _WORD
    if character in " \t":
        return _BLANK
    return _MARK if character.isascii() else _OTHER


def _in_word(character: str) -> bool:
    if character.isascii():
        return character.isalnum() or character == "_"
    return character.isalnum() or unicodedata.category(character)[0] == "M"


def _first(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.search(text)
    assert match is not None, "the pattern takes nothing as well"
    return match
