"""Texts that track the characters of a message through the operations of a chat template. The
result of an unknown operation counts as the message's as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

_OWN, _MESSAGE = "\0", "\1"
"""Marks: the template's own, and of some message. Further ones say of which message."""


class MarkedText(str):
    """A text with a mark for each of its characters: the template's own, or of a message."""

    marks: str

    def __new__(cls, text: str, marks: str = "") -> MarkedText:
        """``marks``: one for each character; all are a message's without."""
        marked = super().__new__(cls, text)
        marked.marks = marks or _MESSAGE * len(text)
        assert len(marked.marks) == len(text), "one mark for each character"
        return marked

    def __str__(self) -> MarkedText:
        return self

    def __add__(self, other: str) -> MarkedText:
        return MarkedText(str.__add__(self, other), self.marks + marks_of(other))

    def __radd__(self, other: str) -> MarkedText:
        return MarkedText(str.__add__(other, self), marks_of(other) + self.marks)

    def __mul__(self, count: Any) -> MarkedText:
        return MarkedText(str.__mul__(self, count), self.marks * count)

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> MarkedText:
        return MarkedText(str.__mod__(self, values))

    def __rmod__(self, template: str) -> MarkedText:
        return MarkedText(str.__mod__(template, self))

    def __getitem__(self, index: Any) -> MarkedText:
        return MarkedText(str.__getitem__(self, index), self.marks[index])

    def __iter__(self) -> Iterator[MarkedText]:
        return (self[index] for index in range(len(self)))

    def strip(self, chars: str | None = None) -> MarkedText:
        return self.lstrip(chars).rstrip(chars)

    def lstrip(self, chars: str | None = None) -> MarkedText:
        return self[len(self) - len(str.lstrip(self, chars)) :]

    def rstrip(self, chars: str | None = None) -> MarkedText:
        return self[: len(str.rstrip(self, chars))]

    def removeprefix(self, prefix: str) -> MarkedText:
        return self[len(self) - len(str.removeprefix(self, prefix)) :]

    def removesuffix(self, suffix: str) -> MarkedText:
        return self[: len(str.removesuffix(self, suffix))]

    def split(self, sep: str | None = None, maxsplit: Any = -1) -> list[Any]:
        return self._placed(str.split(self, sep, maxsplit), None if sep is None else len(sep))

    def rsplit(self, sep: str | None = None, maxsplit: Any = -1) -> list[Any]:
        return self._placed(str.rsplit(self, sep, maxsplit), None if sep is None else len(sep))

    def splitlines(self, keepends: Any = False) -> list[Any]:
        return self._placed(str.splitlines(self, keepends), 0 if keepends else None)

    def partition(self, sep: str) -> tuple[Any, Any, Any]:
        before, separator, _ = str.partition(self, sep)
        first, second = len(before), len(before) + len(separator)
        return self[:first], self[first:second], self[second:]

    def rpartition(self, sep: str) -> tuple[Any, Any, Any]:
        before, separator, _ = str.rpartition(self, sep)
        first, second = len(before), len(before) + len(separator)
        return self[:first], self[first:second], self[second:]

    def replace(self, old: str, new: str, count: Any = -1) -> MarkedText:
        if not old:
            return MarkedText(str.replace(self, old, new, count))
        return joined(self.split(old, count), new)

    def join(self, texts: Iterable[str]) -> MarkedText:
        return joined(texts, self)

    def lower(self) -> MarkedText:
        return self._of_length(str.lower(self))

    def upper(self) -> MarkedText:
        return self._of_length(str.upper(self))

    def capitalize(self) -> MarkedText:
        return self._of_length(str.capitalize(self))

    def title(self) -> MarkedText:
        return self._of_length(str.title(self))

    def _of_length(self, text: str) -> MarkedText:
        return MarkedText(text, self.marks if len(text) == len(self) else "")

    def _placed(self, pieces: list[str], separator: int | None) -> list[Any]:
        """Return pieces of this text that follow one another in it, ``separator`` characters apart;
        with None white space is between them, and none begins with any."""
        pieces_found, offset = [], 0
        for piece in pieces:
            start = str.find(self, piece, offset) if separator is None else offset
            pieces_found.append(self[start : start + len(piece)])
            offset = start + len(piece) + (separator or 0)
        return pieces_found


def of_message(text: str, number: int) -> MarkedText:
    """Return the text of a message."""
    return MarkedText(text, chr(ord(_MESSAGE) + 1 + number) * len(text))


def is_shown(number: int, text: str) -> bool:
    """Return whether a text may hold a part of message ``number``."""
    marks = marks_of(text)
    return _MESSAGE in marks or chr(ord(_MESSAGE) + 1 + number) in marks


def marks_of(text: str) -> str:
    """Return the marks of a text of either kind."""
    return text.marks if isinstance(text, MarkedText) else _OWN * len(text)


def joined(texts: Iterable[str], between: str = "") -> MarkedText:
    """Return texts one after another, with ``between`` between them."""
    listed = list(texts)
    return MarkedText(str.join(between, listed), str.join(marks_of(between), map(marks_of, listed)))


def pieces_of(text: str) -> list[tuple[str, bool]]:
    """Return the stretches of a text, and whether each came with a message."""
    plain, offset, pieces = str.__str__(text), 0, []
    for is_own, group in groupby(marks_of(text), lambda mark: mark == _OWN):
        count = len(list(group))
        pieces.append((plain[offset : offset + count], not is_own))
        offset += count
    return pieces


def holds_marks(value: Any) -> bool:
    """Return whether a value holds a part of a message, however deep."""
    if isinstance(value, str):
        return isinstance(value, MarkedText) and bool(value.marks.strip(_OWN))
    if isinstance(value, dict):
        return any(holds_marks(each) for pair in value.items() for each in pair)
    return isinstance(value, list | tuple | set | frozenset) and any(map(holds_marks, value))


def marked_like(result: Any, *sources: Any) -> Any:
    """Return the result of an operation on ``sources``, marked: a plain text is a message's if any
    of them was."""
    if isinstance(result, MarkedText):
        return result
    if isinstance(result, str):
        return MarkedText(result) if any(map(holds_marks, sources)) else result
    if isinstance(result, list | tuple):
        # Of a text; what is taken out of a list has its own marks.
        texts = [source for source in sources if isinstance(source, str)]
        return type(result)(marked_like(each, *texts) for each in result)
    return result
