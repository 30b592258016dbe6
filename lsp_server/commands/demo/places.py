"""The places where the demo types and edits: in its own bakery, or in code of the user's."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import TypeVar

from lsp_server.text.syntax.python_tree import python_tree

BAKERY = Path(__file__).parent / "bakery"
"""A small project that comes along and does not change: everybody sees the same."""
LARGEST_FILE = 60_000
MOST_FILES = 400
FUNCTION_LINES = (6, 24)
EDITED_LINES = 12
SKIPPED = ("tests", "test", "node_modules", "build", "dist", "__pycache__")

Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class TypingPlace:
    """A line that is typed again: its first characters, after which the demo asks."""

    path: Path
    before: str
    """The document up to that line."""
    typed: str
    after: str
    """The document below it."""

    @property
    def document(self) -> str:
        """The document without that line's text."""
        return f"{self.before}\n{self.after}"


@dataclass(frozen=True, slots=True)
class EditPlace:
    """Lines of a document and what shall become of them. Lines from 0, the end excluded."""

    path: Path
    document: str
    first_line: int
    end_line: int
    instruction: str


TABLE = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_TYPED: list[list[str]] = TABLE["typed"]
"""File, function, and what is typed of one of its lines."""
_EDITED: list[list[str]] = TABLE["edited"]
"""File, function and instruction."""


def bakery_copy(target: Path) -> Path:
    """Return the bakery as a package of a workspace of its own."""
    (target / "bakery").mkdir(parents=True, exist_ok=True)
    for file in BAKERY.glob("*.py.txt"):
        shutil.copyfile(file, target / "bakery" / file.stem)
    return target


def bakery_places(root: Path) -> tuple[list[TypingPlace], list[EditPlace]]:
    """Return where a copy of the bakery is completed and edited."""
    files = {path.name: path for path in (root / "bakery").glob("*.py")}
    typing, edits = [], []
    for name, function, typed in _TYPED:
        text = files[name].read_text("utf-8")
        node = next(each for each in _functions(text) if each.name == function)
        lines = text.splitlines()[: node.end_lineno]
        line = next(n for n in range(node.lineno, len(lines)) if lines[n].startswith(typed))
        typing.append(_typing_place(files[name], text, line, len(typed)))
    for name, function, instruction in _EDITED:
        text = files[name].read_text("utf-8")
        node = next(each for each in _functions(text) if each.name == function)
        edits.append(_edit_place(files[name], text, node, instruction))
    return typing, edits


def places_in(root: Path, typing: int, edits: int) -> tuple[list[TypingPlace], list[EditPlace]]:
    """Return ``count`` places of both kinds, spread over the Python files below a folder."""
    texts = {path: path.read_text("utf-8", errors="replace") for path in _python_files(root)}
    functions = [
        (path, text, node)
        for path, text in texts.items()
        for node in _functions(text)
        if FUNCTION_LINES[0] <= _line_count(node) <= FUNCTION_LINES[1] and not node.decorator_list
    ]
    typed = [typing_place for function in functions for typing_place in _places_to_type(*function)]
    by_kind: dict[str, list[EditPlace]] = {}
    for path, text, node in functions:
        if _line_count(node) <= EDITED_LINES:
            for instruction in _instructions(node):
                edit_place = _edit_place(path, text, node, instruction)
                by_kind.setdefault(instruction.split()[0], []).append(edit_place)
    turns = chain.from_iterable(zip_longest(*(_spread(kind, edits) for kind in by_kind.values())))
    return _spread(typed, typing), list(islice((turn for turn in turns if turn is not None), edits))


def _spread(items: Sequence[Place], count: int) -> list[Place]:
    """Evenly spaced members: the same on every run, and from different files."""
    step = max(len(items) / max(count, 1), 1)
    return [items[int((index + 0.5) * step)] for index in range(min(count, len(items)))]


def _python_files(root: Path) -> list[Path]:
    paths = (
        path
        for path in sorted(root.rglob("*.py"))
        if not any(name.startswith(".") or name in SKIPPED for name in path.relative_to(root).parts)
        and path.stat().st_size < LARGEST_FILE
    )
    return list(islice(paths, MOST_FILES))


def _functions(text: str) -> Iterator[ast.FunctionDef]:
    tree = python_tree(text)
    nodes = ast.walk(tree) if tree is not None else ()
    yield from (node for node in nodes if isinstance(node, ast.FunctionDef))


def _line_count(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _typing_place(path: Path, text: str, line: int, typed: int) -> TypingPlace:
    lines = text.splitlines(keepends=True)
    before, after = "".join(lines[:line]), "".join(lines[line + 1 :])
    return TypingPlace(path, before, lines[line][:typed], after)


def _edit_place(path: Path, text: str, node: ast.FunctionDef, instruction: str) -> EditPlace:
    return EditPlace(path, text, node.lineno - 1, node.end_lineno or node.lineno, instruction)


def _places_to_type(path: Path, text: str, node: ast.FunctionDef) -> Iterator[TypingPlace]:
    """Yield the last statement of a function that is one line, after its first third."""
    last = node.body[-1]
    if len(node.body) > 2 and _line_count(last) == 1:
        line = text.splitlines()[last.lineno - 1]
        indent = len(line) - len(line.lstrip())
        typed = indent + max(2, len(line.strip()) // 3)
        yield _typing_place(path, text, last.lineno - 1, typed)


def _instructions(node: ast.FunctionDef) -> Iterator[str]:
    parameters = [each.arg for each in node.args.args if each.arg not in ("self", "cls")]
    if parameters:
        yield f"rename {parameters[0]} to new_{parameters[0]}"
        yield f"return None if {parameters[-1]} is None"
    if ast.get_docstring(node) is not None and len(node.body) > 1:
        yield "delete the docstring"
