"""Commits cut into histories: some of the changes are made, and the next one is asked for."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Literal

from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.text.documents.document import Document, Position

Kind = Literal["next", "moved", "nothing"]
MOST_OLD_LINES, MOST_NEW_LINES = 12, 14
MOST_CHANGES = 12
NEAR = 8
"""Lines from the last edit to the next one, where the cursor need not move."""
FAR = 24
"""Lines to the nearest change, where nothing is to come."""
LANGUAGES = {".py": "python", ".go": "go", ".ts": "typescript",
             ".md": "markdown", ".rst": "restructuredtext", ".toml": "toml"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of the old file that become others; 0-based."""

    start: int
    end: int
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitStep:
    """Where somebody stands in the middle of a commit.

    kind: the next change lies at the cursor behind the last one (next), or where the cursor was
    moved to (moved), or nothing is left to change around the cursor (nothing).
    """

    id: str
    kind: Kind
    path: str
    document: Document
    edits: tuple[RecordedEdit, ...]
    """Those made so far, the latest first."""
    cursor: Position
    wanted: str
    """The file behind the next change; as it is where nothing comes."""

    @property
    def repository(self) -> str:
        """The repository of the commit."""
        return self.id.split("@")[0].split("/")[-1]


def read_steps(file: Path, seed: int = 1) -> Iterator[CommitStep]:
    """The steps of all commits of a file of cases."""
    with file.open() as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            yield from steps_of(row, random.Random(seed + number))


def blocks_between(old: list[str], new: list[str]) -> list[Block]:
    """The changed lines between two files."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        Block(first, end, tuple(new[new_first:new_end]))
        for kind, first, end, new_first, new_end in matcher.get_opcodes()
        if kind != "equal"
    ]


def steps_of(row: dict[str, str], rng: random.Random) -> Iterator[CommitStep]:
    """The steps of a commit, in the order of its lines."""
    old = row["before"].splitlines(keepends=True)
    blocks = blocks_between(old, row["after"].splitlines(keepends=True))
    if not 2 <= len(blocks) <= MOST_CHANGES or any(map(_is_long, blocks)):
        return
    for count in range(1, len(blocks)):
        before = _document(row, old, blocks[:count])
        document, edits = before
        shift = sum(len(one.new) - (one.end - one.start) for one in blocks[:count])
        place = blocks[count].start + shift
        last = edits[0]
        lines, next_block = document.lines, blocks[count]
        size = next_block.end - next_block.start
        wanted = "".join([*lines[:place], *next_block.new, *lines[place + size :]])
        end = Position(max(last.end - 1, 0), len(lines[max(last.end - 1, 0)].rstrip("\r\n")))
        kind: Kind = "next" if place + size - last.end < NEAR else "moved"
        at = end if kind == "next" else _near(lines, place, rng)
        yield CommitStep(row["id"], kind, row["path"], document, edits, at, wanted)
        far = _far_from(lines, [one.start + shift for one in blocks[count:]], edits, rng)
        if far is not None:
            yield CommitStep(row["id"], "nothing", row["path"], document, edits, far, document.text)
    document, edits = _document(row, old, blocks)
    at = Position(max(edits[0].end - 1, 0), 0)
    yield CommitStep(row["id"], "nothing", row["path"], document, edits, at, document.text)


def _is_long(block: Block) -> bool:
    return block.end - block.start > MOST_OLD_LINES or len(block.new) > MOST_NEW_LINES


def _document(
    row: dict[str, str], old: list[str], done: list[Block]
) -> tuple[Document, tuple[RecordedEdit, ...]]:
    lines, place, edits = [], 0, []
    for one in done:
        lines += old[place : one.start]
        edits.append((len(lines), old[one.start : one.end], list(one.new)))
        lines += one.new
        place = one.end
    lines += old[place:]
    language = LANGUAGES.get(Path(row["path"]).suffix, "plaintext")
    document = Document(f"file:///project/{row['path']}", language, 1, "".join(lines))
    recorded = [RecordedEdit(document, at, was, new, 0.0) for at, was, new in edits]
    return document, tuple(recorded[::-1])


def _near(lines: list[str], place: int, rng: random.Random) -> Position:
    line = min(max(place + rng.choice([0, 0, 1, -1, 2]), 0), len(lines) - 1)
    return Position(line, len(lines[line]) - len(lines[line].lstrip()))


def _far_from(
    lines: list[str], places: list[int], edits: tuple[RecordedEdit, ...], rng: random.Random
) -> Position | None:
    taken = [*places, *(one.line for one in edits)]
    free = [
        at
        for at, line in enumerate(lines)
        if line.strip() and all(abs(at - one) > FAR for one in taken)
    ]
    return Position(rng.choice(free), 0) if free else None
