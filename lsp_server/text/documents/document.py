"""The text of open documents: a list of lines, positions in three encodings. LSP ends lines at
``\\n``, ``\\r\\n`` and ``\\r`` and nowhere else (specification 3.18, text documents)."""

from __future__ import annotations

import re
import struct
import uuid
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Literal

from lsp_server.shared.errors import RedraftError, UnknownDocument
from lsp_server.text.text_edit import TextEdit

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
_ENDS_OF_PYTHON = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Characters at which ``str.splitlines`` ends a line, and LSP does not."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A position between characters: line and code points from its start, both 0-based."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """A document as it was at one version."""

    uri: str
    language: str
    version: int
    text: str


def split_lines(text: str) -> list[str]:
    """Lines with their ends; the last one has none and may be empty. Never empty."""
    if any(other in text for other in _ENDS_OF_PYTHON):
        lines = _LINE.findall(text)
    else:
        lines = text.splitlines(keepends=True)
    if not lines or lines[-1][-1] in "\r\n":
        lines.append("")
    return lines


def with_line_feeds(text: str) -> str:
    """Return a text whose lines all end in a line feed, as models and parsers read them."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def line_end(line: str) -> str:
    """``\\n``, ``\\r\\n``, ``\\r`` or nothing."""
    if line.endswith("\r\n"):
        return "\r\n"
    return line[-1] if line and line[-1] in "\r\n" else ""


def column_of(line: str, units: int, encoding: Encoding) -> int:
    """Return code points of ``line`` before ``units`` code units; inside a character: its start.
    Beyond the line's end, the end (specification: "defaults back to the line length")."""
    length = len(line) - len(line_end(line))
    if units <= 0:
        return 0
    if encoding == "utf-32" or line.isascii():
        return min(units, length)
    counted = 0
    for column in range(length):
        width = unit_width(line[column], encoding)
        if counted + width > units:
            return column
        counted += width
    return length


def units_of(line: str, column: int, encoding: Encoding) -> int:
    """Return code units of the first ``column`` code points of ``line``."""
    if encoding == "utf-32" or line.isascii():
        return column
    return sum(unit_width(character, encoding) for character in line[:column])


def unit_width(character: str, encoding: Encoding) -> int:
    """Return code units of one character."""
    code = ord(character)
    if encoding == "utf-16":
        return 2 if code > 0xFFFF else 1
    if encoding == "utf-8":
        return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    return 1


def _split_surrogates(text: str) -> str:
    """Astral characters as pairs of surrogates, so that columns are UTF-16 units."""
    data = text.encode("utf-16-le", "surrogatepass")
    return "".join(map(chr, struct.unpack(f"<{len(data) // 2}H", data)))


def _join_surrogates(text: str) -> str:
    """Pairs of surrogates as the characters they mean; lone ones stay."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


class Document:
    """One open text document. Not thread-safe: the daemon's event loop owns it."""

    def __init__(self, uri: str, language: str, version: int, text: str) -> None:
        self.uri = uri
        self.language = language
        self.version = version
        self.opened = uuid.uuid4().hex
        """Of this opening alone: a document that is opened again is another one, whatever its
        version says."""
        self.is_open = True
        self.text = _join_surrogates(text)
        self.lines = split_lines(self.text)
        self._starts = array("q", [0])
        """Code points before each line, as far as they were counted since the last edit."""

    def snapshot(self) -> DocumentVersion:
        """The document as it is now; later edits do not change it."""
        return DocumentVersion(self.uri, self.language, self.version, self.text)

    def position(self, line: int, units: int, encoding: Encoding) -> Position:
        """Return an LSP position as ours. Outside the document: the nearest position in it."""
        if line < 0:
            return Position(0, 0)
        if line >= len(self.lines):
            return self.end()
        return Position(line, column_of(self.lines[line], units, encoding))

    def end(self) -> Position:
        """Return the position after the last character."""
        return Position(len(self.lines) - 1, len(self.lines[-1]))

    def offset(self, position: Position) -> int:
        """Return code points before ``position``."""
        return self._start_of(position.line) + position.column

    def position_at(self, offset: int) -> Position:
        """Return the position ``offset`` code points after the start."""
        starts = self._starts
        if starts[-1] <= offset:
            self._start_of(len(self.lines))
        line = bisect_right(starts, offset, 0, min(len(starts), len(self.lines))) - 1
        return Position(line, min(offset - starts[line], len(self.lines[line])))

    def _start_of(self, line: int) -> int:
        """Return code points before a line, or before the end."""
        last_line = len(self._starts) - 1
        if line > last_line:
            lengths = map(len, islice(self.lines, last_line, line))
            self._starts.extend(islice(accumulate(lengths, initial=self._starts[-1]), 1, None))
        return self._starts[line]

    def between(self, start: Position, end: Position) -> str:
        """Return the text from ``start`` to ``end``."""
        if start.line == end.line:
            return self.lines[start.line][start.column : end.column]
        first, last = self.lines[start.line][start.column :], self.lines[end.line][: end.column]
        return "".join([first, *self.lines[start.line + 1 : end.line], last])

    def units(self, position: Position, encoding: Encoding) -> tuple[int, int]:
        """``position`` as LSP's line and character."""
        return position.line, units_of(self.lines[position.line], position.column, encoding)

    def replace_all(self, text: str) -> TextEdit[Position]:
        """Return the client sent the full text."""
        edit = TextEdit(Position(0, 0), self.end(), text)
        self.text = _join_surrogates(text)
        del self._starts[1:]
        self.lines = split_lines(self.text)
        return edit

    def change(
        self, start: tuple[int, int], end: tuple[int, int], text: str, encoding: Encoding
    ) -> TextEdit[Position]:
        """Replace an LSP range (line, units) by ``text``; returns the edit in code points."""
        first = self.position(*start, encoding)
        last = self.position(*end, encoding)
        if last < first:
            first, last = last, first
        head, tail = self._halves(first, last, start, end, encoding)
        window = head + text + tail
        if not window.isascii() and _SURROGATE.search(window) is not None:
            # Halves of characters may meet or part here: the edit then tells whole lines.
            window = _join_surrogates(window)
            line_end_length = len(line_end(self.lines[last.line]))
            to = Position(last.line, len(self.lines[last.line]) - line_end_length)
            edit = TextEdit(Position(first.line, 0), to, window[: len(window) - line_end_length])
        else:
            edit = TextEdit(first, last, text)
        from_line = first.line
        if from_line > 0 and window.startswith("\n") and self.lines[from_line - 1].endswith("\r"):
            # A lone carriage return and the newline that now follows it are one line end.
            from_line -= 1
            window = self.lines[from_line] + window
        lines = split_lines(window)
        if last.line + 1 < len(self.lines):
            # The window ends in a line end, so the empty line after it is the next line's start.
            assert lines[-1] == ""
            lines.pop()
        before, after = self._start_of(from_line), self._start_of(last.line + 1)
        self.text = "".join([self.text[:before], *lines, self.text[after:]])
        self.lines[from_line : last.line + 1] = lines
        del self._starts[from_line + 1 :]
        return edit

    def _halves(
        self,
        first: Position,
        last: Position,
        start: tuple[int, int],
        end: tuple[int, int],
        encoding: Encoding,
    ) -> tuple[str, str]:
        """Return the text before and after the range on its first and last line. A UTF-16
        client may cut a surrogate pair in two; the halves then stay as lone surrogates."""
        head_line, tail_line = self.lines[first.line], self.lines[last.line]
        if encoding != "utf-16" or (head_line.isascii() and tail_line.isascii()):
            return head_line[: first.column], tail_line[last.column :]
        begin, finish = sorted((start, end))
        head_units, tail_units = _split_surrogates(head_line), _split_surrogates(tail_line)
        head = head_units[: _clamped(begin, first, head_units)]
        tail = tail_units[_clamped(finish, last, tail_units) :]
        return _join_surrogates(head), _join_surrogates(tail)


def _clamped(requested: tuple[int, int], nearest: Position, line_units: str) -> int:
    """UTF-16 column of ``requested`` on its line, clamped as ``nearest`` was."""
    if requested[0] != nearest.line:
        return 0 if requested[0] < nearest.line else len(line_units)
    return max(0, min(requested[1], len(line_units) - len(line_end(line_units))))


@dataclass(slots=True)
class Notebook:
    """A notebook: its cells' document URIs in order."""

    uri: str
    version: int
    cells: list[str] = field(default_factory=list)


class Documents:
    """The documents of one client."""

    def __init__(self) -> None:
        self.encoding: Encoding = "utf-16"
        self._open: dict[str, Document] = {}
        self.notebooks: dict[str, Notebook] = {}

    def __iter__(self) -> Iterator[Document]:
        return iter(list(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)

    def open(self, uri: str, language: str, version: int, text: str) -> Document:
        """A document was opened; a second opening replaces the first."""
        self.close(uri)
        document = Document(uri, language, version, text)
        self._open[uri] = document
        return document

    def close(self, uri: str) -> None:
        """A document was closed. Unknown ones are ignored."""
        document = self._open.pop(uri, None)
        if document is not None:
            document.is_open = False

    def get(self, uri: str) -> Document:
        """Return the open document. Raises UnknownDocument: files are never read in its place."""
        document = self._open.get(uri)
        if document is None:
            raise UnknownDocument(f"{uri} is not open; send textDocument/didOpen first")
        return document

    def find(self, uri: str) -> Document | None:
        """Return the open document, if it is open."""
        return self._open.get(uri)

    def notebook_of(self, cell: str) -> Notebook | None:
        """Return the notebook that ``cell`` belongs to."""
        for notebook in self.notebooks.values():
            if cell in notebook.cells:
                return notebook
        return None


def offsets_of_lines(text: str, lines: str, what: str) -> tuple[int, int]:
    """Return code points of whole lines ``A:B``, from 1, both included, or of line ``A``, without
    the end of the last one. ``what``: the text, in words. Raises RedraftError."""
    first_text, _, last_text = lines.partition(":")
    try:
        first, last = int(first_text), int(last_text or first_text)
    except ValueError:
        raise RedraftError(f"lines {lines!r}: not a range; give first:last, as in 3:17") from None
    every = split_lines(text)
    count = len(every) - (not every[-1] and len(every) > 1)
    if not 1 <= first <= last <= count:
        raise RedraftError(f"lines {lines} are outside of {what}, which has {count} lines")
    ends = [0, *accumulate(map(len, every))]
    return ends[first - 1], ends[last] - len(line_end(every[last - 1]))
