"""A piece of Python source with its syntax tree, places in characters, and replacements in it."""

from __future__ import annotations

import ast
import io
import itertools
import tokenize
import warnings
from dataclasses import dataclass

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Replacement:
    """Characters start to end (exclusive) give way to `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Token:
    """A lexical token with its place in characters."""

    type: int
    text: str
    start: int
    end: int


class Region:
    """Whole statements of Python, indented or not, e.g. one method.

    Raises SyntaxError when the text does not parse.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        indented = source[:1] in (" ", "\t")
        # An indented piece parses below a block header of its own line.
        self._extra = 1 if indented else 0
        self._parsed = "if 1:\n" + source if indented else source
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.tree = ast.parse(self._parsed)
            except (ValueError, RecursionError, MemoryError) as error:
                raise SyntaxError(str(error)) from error
        self._line_starts = [0]
        self._lines = source.splitlines(keepends=True)
        for line in self._lines:
            self._line_starts.append(self._line_starts[-1] + len(line))

    def place(self, line: int, utf8_column: int) -> int:
        """Character offset of a syntax tree's position (lines from 1, columns in UTF-8 bytes)."""
        number = line - 1 - self._extra
        if number >= len(self._lines):
            return len(self.source)
        text = self._lines[number]
        if not text.isascii():
            utf8_column = len(text.encode()[:utf8_column].decode(errors="ignore"))
        return self._line_starts[number] + utf8_column

    def line_start(self, line: int) -> int:
        """Character offset of a line of the syntax tree; the end of the source past the last."""
        return self._line_starts[min(line - 1 - self._extra, len(self._lines))]

    def start(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> int:
        """Character offset of a node's first character."""
        return self.place(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> int:
        """Character offset after a node's last character."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.place(node.end_lineno, node.end_col_offset)

    def text(self, node: ast.expr | ast.stmt | ast.arg) -> str:
        """The source of a node."""
        return self.source[self.start(node) : self.end(node)]

    def functions(self) -> list[FunctionNode]:
        """Functions of the region whose body starts on a line of its own, outermost first."""
        return [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, FunctionNode) and self.starts_line(node.body[0])
        ]

    def starts_line(self, node: ast.stmt) -> bool:
        """Whether nothing stands before a statement on its line."""
        start = self.start(node)
        line = self.line_start(node.lineno)
        return not self.source[line:start].strip()

    def indent(self, node: ast.stmt) -> str:
        """The whitespace before a statement that starts a line."""
        return self.source[self.line_start(node.lineno) : self.start(node)]

    def tokens(self) -> list[Token]:
        """Lexical tokens; an f-string is one STRING token on every version of Python.

        Raises SyntaxError where the tokenizer stops.
        """
        found: list[Token] = []
        open_strings: list[int] = []
        lines = io.StringIO(self._parsed).readline
        try:
            for item in tokenize.generate_tokens(lines):
                if item.start[0] <= self._extra:
                    continue
                start, end = self._at(item.start), self._at(item.end)
                name = tokenize.tok_name[item.type]
                if name == "FSTRING_START":
                    open_strings.append(start)
                elif name == "FSTRING_END":
                    start = open_strings.pop()
                    if not open_strings:
                        text = self.source[start:end]
                        found.append(Token(tokenize.STRING, text, start, end))
                elif not open_strings:
                    found.append(Token(item.type, item.string, start, end))
        except (tokenize.TokenError, IndentationError) as error:
            raise SyntaxError(str(error)) from error
        return found

    def _at(self, position: tuple[int, int]) -> int:
        number = min(position[0] - 1 - self._extra, len(self._lines))
        return min(self._line_starts[number] + position[1], len(self.source))


def docstring_of(function: FunctionNode) -> ast.Expr | None:
    """The docstring's statement."""
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return first if isinstance(first.value.value, str) else None
    return None


def led_by_newline(source: str, replacements: list[Replacement]) -> list[Replacement]:
    """The same change, with whole lines that go or come taken from the newline before them.

    A token of a newline has the indent of the next line in it, so that lines begin with theirs.
    """
    ordered = sorted(replacements, key=lambda item: (item.start, item.end))
    moved = [_led_by_newline(source, item) for item in ordered]
    # The first line has no newline before it, and a line after it would then overlap.
    apart = all(a.end <= b.start for a, b in itertools.pairwise(moved))
    return moved if apart else ordered


def _led_by_newline(source: str, item: Replacement) -> Replacement:
    texts = (source[item.start : item.end], item.text)
    lines = any(texts) and all(text.endswith("\n") for text in texts if text)
    if not lines or item.start == 0 or source[item.start - 1] != "\n":
        return item
    text = "\n" + item.text[:-1] if item.text else ""
    return Replacement(item.start - 1, item.end - 1, text)


def apply(source: str, replacements: list[Replacement]) -> tuple[str, list[tuple[int, int]]]:
    """The text after replacements that do not overlap, and where their text stands in it."""
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    taken = length = 0
    for item in sorted(replacements, key=lambda item: (item.start, item.end)):
        assert item.start >= taken, "replacements overlap"
        pieces += [source[taken : item.start], item.text]
        length += item.start - taken
        spans.append((length, length + len(item.text)))
        length += len(item.text)
        taken = item.end
    pieces.append(source[taken:])
    return "".join(pieces), spans
