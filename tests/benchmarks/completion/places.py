"""Places of finished code at which a suggestion would come: rests of lines that are taken off, and
ends of names behind which nothing is missing."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.shared.errors import BenchError
from lsp_server.text.syntax.roles import Role
from lsp_server.text.syntax.tree import SyntaxTree

LANGUAGES = {".py": "python", ".ts": "typescript", ".js": "javascript", ".go": "go"}
LEAST_REST = 3
"""Characters that are taken off a line at least."""
_UNWRITTEN = re.compile(
    r"(^|/)(node_modules|dist|build|_?vendor|__pycache__|esm\d*|cjs|umd)/|\.min\."
)
"""Paths of code that nobody wrote there."""
_NAME = re.compile(r"[^\W\d]\w{3,}")
_BORDER = re.compile(r"\b|(?<=\W)(?=\W)")

Kind = Literal["rest", "end", "in line"]


class RepositoryFile(NamedTuple):
    """A file of a repository."""

    repository: str
    path: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A cursor in a file. ``rest`` is what is missing behind it, empty for nothing."""

    kind: Kind
    file: RepositoryFile
    prefix: str
    suffix: str
    rest: str = ""

    @property
    def request(self) -> CompletionRequest:
        """What an editor asks there."""
        file = self.file
        return CompletionRequest(file.path, file.path, "", file.language, self.prefix, self.suffix)


def files_of(root: Path) -> Iterator[RepositoryFile]:
    """Code of a folder, or of a ``.jsonl`` file of ``{path, content}`` rows. Raises BenchError."""
    if not root.exists():
        raise BenchError(f"there is no {root}; give folders or .jsonl files of code")
    if root.is_file():
        rows = [json.loads(line) for line in root.read_text("utf-8").splitlines()]
        read = [(str(row["path"]), str(row["content"])) for row in rows]
    else:
        paths = [path for path in sorted(root.rglob("*")) if path.suffix in LANGUAGES]
        read = [(path.relative_to(root).as_posix(), _text(path)) for path in paths]
    for path, text in read:
        language = LANGUAGES.get(Path(path).suffix)
        lines = text.splitlines()
        is_written = not _UNWRITTEN.search(path) and not path.endswith(".d.ts")
        if language and is_written and 25 < len(lines) < 3000 and max(map(len, lines)) < 400:
            yield RepositoryFile(root.stem, path, language, text.replace("\r\n", "\n"))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        return ""


def places_of(
    files: Iterable[RepositoryFile], rests: int, names: int, rng: random.Random
) -> list[CodePlace]:
    """Of a repository so many rests of lines, of its names so many at ends of lines and so many
    within lines, each in a line of its own."""
    left: dict[Kind, int] = {"rest": rests, "end": names, "in line": names}
    found: list[CodePlace] = []
    lines = [(file, *line) for file in files for line in _code_lines(file)]
    rng.shuffle(lines)
    for file, start, line in lines:
        if not any(left.values()):
            break
        for kind in (kind for kind in left if left[kind]):
            column = _column(kind, line, rng)
            if column is None:
                continue
            behind = start + (column if kind == "in line" else len(line))
            rest = line[column:] if kind == "rest" else ""
            prefix, suffix = file.text[: start + column], file.text[behind:]
            found.append(CodePlace(kind, file, prefix, suffix, rest))
            left[kind] -= 1
            break
    return found


def _code_lines(file: RepositoryFile) -> Iterator[tuple[int, str]]:
    """Offsets and texts of the lines in which code begins."""
    tree = SyntaxTree.of(file.text, file.language)
    prose = tree.pieces() if tree is not None else []
    skipped = {
        number
        for piece in prose
        if piece.role is Role.COMMENT or "\n" in file.text[piece.start : piece.end]
        for number in range(
            file.text.count("\n", 0, piece.start), file.text.count("\n", 0, piece.end) + 1
        )
    }
    start = 0
    for number, line in enumerate(file.text.split("\n")):
        if line.strip() and number not in skipped:
            yield start, line.rstrip()
        start += len(line) + 1


def _column(kind: Kind, line: str, rng: random.Random) -> int | None:
    """Where the cursor stands in a line, none where it is no such line: of rests seven of ten at
    borders of words and signs, one at the line's beginning, the others anywhere."""
    names = [name.end() for name in _NAME.finditer(line)]
    if kind == "end":
        return len(line) if names[-1:] == [len(line)] else None
    if kind == "in line":
        within = [end for end in names if end < len(line)]
        return rng.choice(within) if within else None
    first, last = len(line) - len(line.lstrip()), len(line) - LEAST_REST
    if last - first < 5:
        return None
    borders = [found.start() for found in _BORDER.finditer(line, first + 1, last)]
    chosen = rng.random()
    if chosen < 0.1:
        return first
    if chosen < 0.8 and borders:
        return rng.choice(borders)
    return rng.randrange(first + 1, last + 1)
