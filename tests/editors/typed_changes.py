"""Changes that a person begins by hand and carries to their end by Tab alone, in any editor."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waiting import wait_for

FILES = {"python": "shop.py", "typescript": "shop.ts", "go": "shop.go"}

FIRST_S = 8.0
"""So long a person waits for what follows from what was typed."""
NEXT_S = 3.0
"""So long for what comes behind one that was taken."""
MOST_TABS = 40


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
    """Those of ``typed_changes.json``, where the marks ``‹›`` are around what is typed over, and
    ``wanted`` has the lines that differ in the end, by their numbers."""
    read = json.loads((Path(__file__).parent / "typed_changes.json").read_text(encoding="utf-8"))
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


def carry_on_by_tabs(look: Callable[[], tuple[Any, Any]], press_tab: Callable[[], None]) -> int:
    """Press Tab as long as there is anything that it could take, as a person does; how often.

    ``look``: what stands on the screen that the key could take, false for nothing, and all else
    that shows whether something happened.
    """
    patience_s = FIRST_S
    for tabs in range(MOST_TABS):
        try:
            wait_for(lambda: look()[0], "something to take", patience_s)
        except AssertionError:
            return tabs
        before = look()
        if not before[0]:
            continue
        press_tab()
        wait_for(lambda before=before: look() != before, "anything after Tab", 10)  # type: ignore[misc]
        patience_s = NEXT_S
    raise AssertionError(f"something to take comes without end: {look()}")
