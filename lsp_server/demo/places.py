"""Where in a repository the demo types and what it edits: chosen from the code, not by hand."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import TypeVar

Place = TypeVar("Place")

MAX_FILE_BYTES = 60_000
MAX_FUNCTION_LINES = 24
MAX_EDITED_LINES = 12


@dataclass(frozen=True, slots=True)
class TypingPlace:
    """A function whose body is cut after its first lines; the demo types on from there."""

    path: Path
    before: str
    """The document up to the line that is typed."""
    typed: str
    """What is typed, character by character: the start of a line, or a line and the next indent."""
    after: str
    """The document below the cut-out lines."""


@dataclass(frozen=True, slots=True)
class EditPlace:
    """Lines of a document and what shall become of them. Lines 0-based, end exclusive."""

    path: Path
    text: str
    first_line: int
    end_line: int
    instruction: str


def typing_places(root: Path, count: int) -> list[TypingPlace]:
    """``count`` places spread over the Python files below ``root``, longest functions first."""
    places = [place for path in _python_files(root) for place in _typing_places_in(path)]
    return _spread(places, count)


def edit_places(root: Path, count: int) -> list[EditPlace]:
    """``count`` functions below ``root`` with instructions that fit them, kinds taking turns."""
    places = [place for path in _python_files(root) for place in _edit_places_in(path)]
    by_kind: dict[str, list[EditPlace]] = {}
    for place in places:
        by_kind.setdefault(place.instruction.split()[0], []).append(place)
    spread = [_spread(group, count) for group in by_kind.values()]
    turns = (place for row in zip_longest(*spread) for place in row if place is not None)
    return list(islice(turns, count))


def _spread(places: list[Place], count: int) -> list[Place]:
    """Evenly spaced members: the same on every run, and from different files."""
    if len(places) <= count:
        return places
    step = len(places) / count
    return [places[int((index + 0.5) * step)] for index in range(count)]


def _python_files(root: Path) -> list[Path]:
    return sorted(
        path
        for path in root.rglob("*.py")
        if not any(part.startswith(".") or part == "tests" for part in path.parts[-6:])
        and path.stat().st_size < MAX_FILE_BYTES
    )


def _functions(text: str) -> list[ast.FunctionDef]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and 6 <= _line_count(node) <= MAX_FUNCTION_LINES
        and not node.decorator_list
    ]


def _line_count(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _typing_places_in(path: Path) -> list[TypingPlace]:
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.splitlines(keepends=True)
    places: list[TypingPlace] = []
    for function in _functions(text):
        body = [statement for statement in function.body if not _is_docstring(statement)]
        if len(body) < 3:
            continue
        statement = body[len(body) // 2]
        before = "".join(lines[: statement.lineno - 1])
        after = "".join(lines[function.end_lineno or statement.lineno :])
        line = lines[statement.lineno - 1]
        places.append(TypingPlace(path, before, _typed(line, statement, len(places)), after))
    return places


def _typed(line: str, statement: ast.stmt, number: int) -> str:
    """In turn the first third of a line, which asks for its rest, and a whole line and an indent,
    which asks for a block."""
    indent = line[: len(line) - len(line.lstrip())]
    if number % 2 and _line_count(statement) == 1:
        return line + indent
    return line[: len(indent) + max(2, len(line.strip()) // 3)]


def _edit_places_in(path: Path) -> list[EditPlace]:
    text = path.read_text(encoding="utf-8", errors="replace")
    return [
        EditPlace(path, text, function.lineno - 1, function.end_lineno or 0, instruction)
        for function in _functions(text)
        if _line_count(function) <= MAX_EDITED_LINES
        for instruction in _instructions(function)
    ]


def _instructions(function: ast.FunctionDef) -> list[str]:
    """What an instruction may ask of this function."""
    instructions = []
    names = [argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")]
    if names:
        instructions.append(f"rename the parameter {names[0]} to new_{names[0]}")
    if names and _uses(function, names[0]) >= 3:
        instructions.append(f"print {names[0]} at the start")
    if _is_docstring(function.body[0]):
        instructions.append("remove the docstring")
    else:
        words = function.name.strip("_").replace("_", " ")
        instructions.append(f'add the docstring "{words.capitalize()}."')
    return instructions


def _uses(function: ast.FunctionDef, name: str) -> int:
    return sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(function))


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
