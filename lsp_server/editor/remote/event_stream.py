"""Reads event streams as browsers do (WHATWG HTML, section 9.2.6)."""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from dataclasses import dataclass

MOST_CHARACTERS = 16 << 20
"""An event that is longer, or a document, is not read to its end."""
_LINE_END = re.compile(r"\r\n|\n|\r")


class EventTooLong(ValueError):
    """A server sends an event, or a document, that has no end."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event, or a whole JSON document that a server sends in place of a stream."""

    data: str
    event: str = "message"


class EventStream:
    """Takes the bytes of a stream as they come and tells the events that are whole."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""
        """The line that is not whole yet."""
        self._is_first = True
        self._behind_return = False
        """A line ended in a carriage return: a line feed after it is of the same line end."""
        self._document: list[str] | None = None
        self._event = ""
        self._data: list[str] = []
        self._characters = 0

    def read(self, received: bytes) -> Iterator[StreamEvent]:
        """More bytes came. Raises EventTooLong."""
        text = self._decoder.decode(received)
        if self._is_first:
            text = self._opened(text)
        self._characters += len(text)
        if self._characters > MOST_CHARACTERS:
            raise EventTooLong
        if self._document is not None:
            self._document.append(text)
        elif not self._is_first:
            yield from self._lines(text)

    def end(self) -> Iterator[StreamEvent]:
        """Nothing more comes. An event that no blank line ended is not told."""
        if self._document is not None:
            yield StreamEvent("".join(self._document))

    def _opened(self, text: str) -> str:
        """Return the text without a byte order mark, which tells a document from a stream."""
        text = (self._rest + text).removeprefix("\ufeff")
        start = text.lstrip()
        if not start:
            self._rest = text
            return ""
        self._is_first, self._rest = False, ""
        if start[0] in "{[":
            self._document = []
        return text

    def _lines(self, text: str) -> Iterator[StreamEvent]:
        if self._behind_return and text:
            text = text.removeprefix("\n")
            self._behind_return = False
        start = 0
        for line_end in _LINE_END.finditer(text):
            line = self._rest + text[start : line_end.start()]
            self._rest, start = "", line_end.end()
            event = self._line(line)
            if event is not None:
                yield event
        if start:
            self._behind_return = text.endswith("\r")
        self._rest += text[start:]

    def _line(self, line: str) -> StreamEvent | None:
        if not line:
            event = StreamEvent("\n".join(self._data), self._event or "message")
            has_data = bool(self._data)
            self._event, self._data, self._characters = "", [], 0
            return event if has_data else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        return None


async def events_of(received: AsyncIterable[bytes]) -> AsyncIterator[StreamEvent]:
    """Yield the events of a stream. Raises EventTooLong."""
    stream = EventStream()
    async for piece in received:
        for event in stream.read(piece):
            yield event
    for event in stream.end():
        yield event
