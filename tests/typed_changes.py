"""Changes that a person begins by hand and wants carried to their end by Tab alone, read from
``data/typed_changes.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILES = {"python": "shop.py", "typescript": "shop.ts", "go": "shop.go"}


@dataclass(frozen=True, slots=True)
class Typing:
    """Characters of a line that others are typed over, all counted from 1."""

    line: int
    column: int
    length: int
    text: str


@dataclass(frozen=True, slots=True)
class TypedChange:
    """What is typed into a text, and the text that is wanted in the end."""

    name: str
    language: str
    before: str
    typings: tuple[Typing, ...]
    wanted: str

    @property
    def file(self) -> str:
        """The file's name."""
        return FILES[self.language]


def typed_changes() -> list[TypedChange]:
    """All of them. In the file marks ``‹›`` are around what is typed over, and ``wanted`` has the
    lines that differ in the end, by their numbers."""
    read = json.loads((Path(__file__).parent / "data" / "typed_changes.json").read_text("utf-8"))
    return [_change(one, read["texts"][one["language"]]) for one in read["changes"]]


def _change(read: dict[str, Any], lines: list[str]) -> TypedChange:
    typings = tuple(_typing(lines, one) for one in read["typed"])
    wanted = [read["wanted"].get(str(number), line) for number, line in enumerate(lines, 1)]
    texts = ("".join(f"{line}\n" for line in some) for some in (lines, wanted))
    before, after = texts
    return TypedChange(read["name"], read["language"], before, typings, after)


def _typing(lines: list[str], read: dict[str, Any]) -> Typing:
    head, rest = read["marked"].split("‹")
    over, tail = rest.split("›")
    assert lines[read["line"] - 1] == head + over + tail, read
    return Typing(read["line"], len(head) + 1, len(over), read["typed"])
