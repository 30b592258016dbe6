"""Messages out of bytes: LSP's headers towards editors, length prefixes between our processes.

The LSP side is written for hostile input: a wrong header costs one error, never memory, never the
connection.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lsp_server.shared.errors import ProtocolError

if TYPE_CHECKING:
    # The front reads LSP with this module and must start without asyncio.
    import asyncio

MAX_BODY_BYTES = 32 << 20
"""The largest message that is read. A larger one is skipped and answered with an error."""
MAX_SKIPPED_BYTES = 1 << 30
"""A length above this is a lie: skipping so many bytes would mean never to answer again."""
MAX_HEADER_BYTES = 8192

_NEXT_HEADER = re.compile(rb"content-length[ \t]*:[ \t]*[0-9]{1,9}[ \t]*\r?\n", re.IGNORECASE)
_LONGEST_NEXT_HEADER = 64


class MessageSplitter:
    """Cuts a stream of bytes into LSP message bodies. No bytes are held but the current message."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._body_length: int | None = None
        self._to_skip = 0
        self._lost = False

    def feed(self, data: bytes) -> Iterator[bytes | ProtocolError]:
        """Bodies that are complete with ``data``, and an error for each message that is refused."""
        self._buffer += data
        while (item := self._next()) is not None:
            if item is not _AGAIN:
                assert not isinstance(item, _Again)
                yield item

    def _next(self) -> bytes | ProtocolError | _Again | None:
        if self._to_skip:
            return self._skip()
        if self._lost:
            return self._find_header()
        if self._body_length is None:
            return self._read_header()
        if len(self._buffer) < self._body_length:
            return None
        body = bytes(self._buffer[: self._body_length])
        del self._buffer[: self._body_length]
        self._body_length = None
        return body

    def _skip(self) -> _Again | None:
        skipped = min(self._to_skip, len(self._buffer))
        del self._buffer[:skipped]
        self._to_skip -= skipped
        return None if self._to_skip else _AGAIN

    def _find_header(self) -> _Again | None:
        match = _NEXT_HEADER.search(self._buffer)
        if match is None:
            # What could be the beginning of a header is kept for the next bytes.
            del self._buffer[:-_LONGEST_NEXT_HEADER]
            return None
        del self._buffer[: match.start()]
        self._lost = False
        return _AGAIN

    def _read_header(self) -> ProtocolError | _Again | None:
        end, separator = _header_end(self._buffer)
        if end < 0:
            if len(self._buffer) <= MAX_HEADER_BYTES:
                return None
            return self._lose("header longer than 8192 bytes")
        if end > MAX_HEADER_BYTES:
            return self._lose("header longer than 8192 bytes")
        try:
            length = content_length(bytes(self._buffer[:end]))
        except ProtocolError as error:
            return self._lose(str(error))
        if length > MAX_SKIPPED_BYTES:
            return self._lose(f"Content-Length {length} is not believable")
        del self._buffer[: end + separator]
        if length > MAX_BODY_BYTES:
            self._to_skip = length
            return ProtocolError(f"message of {length} bytes is larger than {MAX_BODY_BYTES}")
        if length == 0:
            return ProtocolError("empty message", -32600)
        self._body_length = length
        return _AGAIN

    def _lose(self, message: str) -> ProtocolError:
        # The bytes stay: a cut body may be before a good header. One byte goes, so that the
        # same header is not found again.
        del self._buffer[0]
        self._lost = True
        return ProtocolError(message)


class _Again:
    """State changed, no item yet."""


_AGAIN = _Again()


def _header_end(buffer: bytearray) -> tuple[int, int]:
    """Offset of the blank line after the header and its length; bare newlines are tolerated."""
    strict = buffer.find(b"\r\n\r\n", 0, MAX_HEADER_BYTES + 4)
    bare = buffer.find(b"\n\n", 0, strict if strict >= 0 else MAX_HEADER_BYTES + 2)
    if strict >= 0 and (bare < 0 or strict < bare):
        return strict, 4
    return bare, 2


def content_length(header: bytes) -> int:
    """Length of the body. Raises ProtocolError when there is no single usable one."""
    lengths: set[bytes] = set()
    for line in header.splitlines():
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            lengths.add(value.strip())
    if len(lengths) != 1:
        raise ProtocolError("header without a Content-Length" if not lengths else "two lengths")
    (value,) = lengths
    if not value.isdigit() or len(value) > 19:
        raise ProtocolError(f"Content-Length {value[:20]!r} is not usable")
    return int(value)


def lsp_message(body: bytes) -> bytes:
    """``body`` with the header that LSP asks for."""
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


# Between our own processes: four bytes of length, little endian, then JSON.

Frame = dict[str, Any]
_LENGTH = struct.Struct("<I")
_encode = json.JSONEncoder(separators=(",", ":")).encode


def pack_frame(frame: Frame) -> bytes:
    """``frame`` as bytes. Lone surrogates travel as escapes, so any text can be sent."""
    body = _encode(frame).encode("ascii")
    return _LENGTH.pack(len(body)) + body


async def read_frame(reader: asyncio.StreamReader) -> Frame | None:
    """Return the next frame, None at the end of the stream."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        body = await reader.readexactly(length)
    except (EOFError, ConnectionError):  # asyncio.IncompleteReadError is an EOFError
        return None
    frame: Frame = json.loads(body)
    return frame


def read_frame_blocking(read: Any) -> Frame | None:
    """Return the next frame by ``read(n) -> bytes`` (at most n), None at the end of the stream."""
    header = _read_exactly(read, _LENGTH.size)
    if header is None:
        return None
    body = _read_exactly(read, _LENGTH.unpack(header)[0])
    if body is None:
        return None
    frame: Frame = json.loads(body)
    return frame


def _read_exactly(read: Any, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        try:
            piece = read(count - len(data))
        except OSError:
            return None
        if not piece:
            return None
        data += piece
    return bytes(data)
