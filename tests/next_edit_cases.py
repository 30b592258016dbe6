"""Histories of edits, read from ``data/next_edit_histories.txt``, and of kind ``fresh`` from
``data/fresh_changes.txt``, which is typed key by key: texts before, what somebody
changes, and what the files become when all next edits are taken.

Each begins with ``=== kind, language: name``; a line of an edit says at which line of the text,
from 1, which words become which. ``+++ path`` begins another file of the workspace.
``--- nothing``: nothing is proposed.
"""

from __future__ import annotations

import re
from collections import Counter
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

    @property
    def typed(self) -> dict[str, str]:
        """Return the files after what is typed, before any Tab."""
        lines = self.before[self.path].split("\n")
        for line, old, new in self.edits:
            lines[line] = lines[line].replace(old, new, 1)
            lines = "\n".join(lines).split("\n")
        return {**self.before, self.path: "\n".join(lines)}

    @property
    def wanted(self) -> dict[str, str]:
        """Return the files in the end: those that were typed where nothing may follow."""
        return self.typed if self.after is None else self.after

    def outcome(self, files: dict[str, str]) -> str:
        """Return how far ``files`` are what is wanted: wrong where a line that came is not wanted,
        or one that went is."""
        if files == self.wanted:
            return "complete"
        if files == self.typed:
            return "nothing"
        for path, text in files.items():
            lines, before, after = (
                Counter(each.split("\n")) for each in (text, self.typed[path], self.wanted[path])
            )
            if (lines - before) - after or (before - lines) & (after - lines):
                return "wrong"
        return "part"

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
