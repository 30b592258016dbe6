"""Histories of edits, read from ``data/next_edit_histories.txt``, and of kind ``fresh`` from
``data/fresh_changes.txt``, which is typed key by key: texts before, what somebody
changes, and what the files become when all next edits are taken.

Each begins with ``=== kind, language: name``; a line of an edit says at which line of the text,
from 1, which words become which. ``+++ path`` begins another file of the workspace.
``--- nothing``: nothing is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ENDING = {"python": "py", "javascript": "js", "typescript": "ts", "go": "go", "rust": "rs",
          "java": "java", "csharp": "cs", "tsx": "tsx"}  # fmt: skip
_HEAD = re.compile(r"^=== ([^,]+), ([^:]+): (.*)\n", re.MULTILINE)
_EDIT = re.compile(r"^(\d+): (.*?) → (.*)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class NextEditCase:
    """What somebody changes in the first of some files, and what the files become."""

    kind: str
    language: str
    name: str
    before: dict[str, str]
    edits: tuple[tuple[int, str, str], ...]
    """Line, counted from 0, old and new words."""
    after: dict[str, str] | None
    """None where nothing may be proposed."""

    @property
    def path(self) -> str:
        """Of the file that is edited."""
        return next(iter(self.before))

    def __str__(self) -> str:
        return f"{self.kind}, {self.language}: {self.name}"


def next_edit_cases(*kinds: str) -> list[NextEditCase]:
    """The histories of some kinds, in order; of all kinds without one."""
    file = "fresh_changes.txt" if kinds == ("fresh",) else "next_edit_histories.txt"
    found = read_cases(Path(__file__).parent / "data" / file)
    return [case for case in found if not kinds or case.kind in kinds]


def read_cases(file: Path) -> list[NextEditCase]:
    """Return the cases of ``file``, in order."""
    _, *parts = _HEAD.split(file.read_text("utf-8"))
    found = []
    for kind, language, name, text in zip(*(parts[at::4] for at in range(4)), strict=True):
        before, rest = text.split("--- edits\n")
        edits, _, after = rest.partition("--- becomes\n")
        path = f"code.{ENDING[language]}"
        files = dict(_files(before, path))
        made = tuple(
            (int(line) - 1, *(part.replace("\\n", "\n") for part in words))
            for line, *words in _EDIT.findall(edits)
        )
        assert made, name
        becomes = {**files, **dict(_files(after, path))} if after else None
        found.append(NextEditCase(kind, language, name, files, made, becomes))
    assert found, file
    return found


def _files(text: str, path: str) -> Iterator[tuple[str, str]]:
    first, *others = re.split(r"^\+\+\+ (.*)\n", text, flags=re.MULTILINE)
    if first:
        yield path, first
    yield from zip(others[::2], others[1::2], strict=True)
