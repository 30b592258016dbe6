"""A Python function as it stands in its file: its text, its syntax tree, and where nodes stand."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tests.benchmarks.training.samples.code import lines_of
from tests.benchmarks.training.samples.holes import Span

FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"


@dataclass(frozen=True)
class Substitution:
    """The characters from start to end give way to ``text``."""

    start: int
    end: int
    text: str


class FunctionSource:
    """The whole lines of one function, indented as in its file.

    Raises SyntaxError or ValueError where ``text`` is no function that Python can read.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = lines_of(text)
        is_indented = text[:1] in (" ", "\t")
        self._first_line = 2 if is_indented else 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(f"if 1:\n{text}" if is_indented else text).body
        if is_indented and isinstance(body[0], ast.If):
            body = body[0].body
        if len(body) != 1 or not isinstance(body[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
            raise ValueError("the text is not one function")
        self.node: FunctionNode = body[0]
        self._line_starts = [0]
        for line in self._lines:
            self._line_starts.append(self._line_starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """The character at a line and a column of UTF-8 bytes, as nodes have them."""
        number = line - self._first_line
        before = self._lines[number].encode()[:column].decode() if column else ""
        return self._line_starts[number] + len(before)

    def span(self, node: ast.expr | ast.stmt | ast.arg) -> Span:
        """The characters of a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.offset(node.lineno, node.col_offset)
        return start, self.offset(node.end_lineno, node.end_col_offset)

    def whole_lines(self, node: ast.stmt) -> Span:
        """The characters of a statement's lines, their last line end included."""
        assert node.end_lineno is not None
        return (
            self._line_starts[node.lineno - self._first_line],
            self._line_starts[node.end_lineno - self._first_line + 1],
        )

    @property
    def docstring(self) -> ast.Expr | None:
        """The statement that is the docstring."""
        first = self.node.body[0]
        is_text = (
            isinstance(first, ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        )
        return first if is_text and isinstance(first, ast.Expr) else None

    @property
    def statements(self) -> list[ast.stmt]:
        """The body without the docstring."""
        return self.node.body[1:] if self.docstring is not None else self.node.body

    @property
    def body_indent(self) -> str:
        """What the lines of the body begin with."""
        line = self._lines[self.node.body[0].lineno - self._first_line]
        return line[: len(line) - len(line.lstrip())]

    @property
    def parameters(self) -> list[ast.arg]:
        """The parameters that callers give by place or name, without ``self`` and ``cls``."""
        found = self.node.args
        every = [*found.posonlyargs, *found.args, *found.kwonlyargs]
        return [one for one in every if one.arg not in ("self", "cls")]

    @property
    def body_start(self) -> int:
        """Where the first line of the body begins; a body on the line of ``def`` has none."""
        return self.whole_lines(self.node.body[0])[0]

    @property
    def has_body_below(self) -> bool:
        """Whether the body stands on lines of its own."""
        return self.text[: self.body_start].rstrip().endswith(":")


def replaced(text: str, substitutions: list[Substitution]) -> str:
    """The text with substitutions made; they must not overlap."""
    pieces, place = [], 0
    for one in sorted(substitutions, key=lambda each: (each.start, each.end)):
        assert one.start >= place, "substitutions overlap"
        pieces += [text[place : one.start], one.text]
        place = one.end
    return "".join([*pieces, text[place:]])


@dataclass(frozen=True)
class FunctionPlace:
    """A function of a file: the characters of its whole lines."""

    start: int
    end: int
    first_line: int
    """From 0."""
    end_line: int


def function_places(text: str, shortest: int = 3, longest: int = 42) -> Iterator[FunctionPlace]:
    """The functions of a file by the number of their lines, decorators left out.

    Nothing where Python cannot read the file.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    starts = [0]
    for line in lines_of(text):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first, end = node.lineno - 1, node.end_lineno or node.lineno
            if shortest <= end - first <= longest and end < len(starts):
                yield FunctionPlace(starts[first], starts[end], first, end)
