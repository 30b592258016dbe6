"""Reading the cases that the benches measure on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from lsp_server.shared.errors import BenchError

Case = TypeVar("Case")


@dataclass(frozen=True, slots=True)
class CompletionCase:
    """One completion with its reference. ``repository`` is None for a file that stands alone."""

    id: str
    path: str
    prefix: str
    suffix: str
    reference: str
    repository: Path | None

    @property
    def group(self) -> str:
        """Name of the repository, or of the case file's only group."""
        return self.repository.stem if self.repository else "no repository"


@dataclass(frozen=True, slots=True)
class EditCase:
    """One edit: ``after`` is what the instruction makes of ``before``."""

    id: str
    path: str
    instruction: str
    instruction_lazy: str
    before: str
    after: str


def load_completion_cases(file: Path, limit: int | None = None) -> list[CompletionCase]:
    """Cases of a JSON lines file, ``limit`` of them evenly spread over it.

    Raises BenchError where the file, a row or a row's repository cannot be read.
    """
    cases = []
    for number, row in _rows(file):
        repository = file.parent / row["repo"] if row.get("repo") else None
        if repository and not repository.exists():
            raise BenchError(f"{file}:{number} names the repository {repository}, which is missing")
        cases.append(
            CompletionCase(
                id=_text(file, number, row, "id"),
                path=str(row.get("path") or "solution.py"),
                prefix=_text(file, number, row, "prefix"),
                suffix=str(row.get("suffix") or ""),
                reference=_text(file, number, row, "reference"),
                repository=repository,
            )
        )
    return evenly_spread(cases, limit)


def load_edit_cases(file: Path, limit: int | None = None) -> list[EditCase]:
    """Edit cases of a JSON lines file, ``limit`` of them evenly spread over it.

    ``instruction_lazy`` is the instruction itself where the file has no short form.
    Raises BenchError where the file or a row cannot be read.
    """
    cases = []
    for number, row in _rows(file):
        instruction = _text(file, number, row, "instruction")
        cases.append(
            EditCase(
                id=_text(file, number, row, "id"),
                path=str(row.get("path") or "edited.py"),
                instruction=instruction,
                instruction_lazy=str(row.get("instruction_lazy") or instruction),
                before=_text(file, number, row, "before"),
                after=_text(file, number, row, "after"),
            )
        )
    return evenly_spread(cases, limit)


def read_repository(repository: Path) -> dict[str, str]:
    """Path to content of a repository: a folder of Python files, or rows of ``{path, content}``.

    Raises BenchError where a row cannot be read.
    """
    if repository.is_dir():
        files = sorted(path for path in repository.rglob("*.py") if path.is_file())
        return {
            path.relative_to(repository).as_posix(): path.read_text("utf-8", errors="replace")
            for path in files
        }
    return {
        _text(repository, number, row, "path"): _text(repository, number, row, "content")
        for number, row in _rows(repository)
    }


def evenly_spread(cases: list[Case], limit: int | None) -> list[Case]:
    """``limit`` of the cases in their order, from all over the list."""
    if limit is None or limit >= len(cases):
        return cases
    return [cases[position * len(cases) // limit] for position in range(limit)]


def _rows(file: Path) -> list[tuple[int, dict[str, Any]]]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{file} cannot be read ({error}); give a JSON lines file") from error
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise BenchError(f"{file}:{number} is no JSON ({error}); one object a line") from error
        if not isinstance(row, dict):
            raise BenchError(f"{file}:{number} is no JSON object; one object a line")
        rows.append((number, row))
    return rows


def _text(file: Path, number: int, row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise BenchError(f"{file}:{number} has no text in {key!r}; see the format of the cases")
    return value
