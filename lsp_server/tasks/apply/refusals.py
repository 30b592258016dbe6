"""Results of putting an edit into its file: the text, or a refusal that a model can act on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.apply.placing import Lines

SHOWN_CHARACTERS = 60
MOST_SHOWN = 4
MORE_CONTEXT = "send more of the lines around the change, as they are in the file"


@dataclass(frozen=True)
class Merge:
    """``text``: the merged file, whole. ``how``: ``unchanged`` where the file has the new text at
    that place already."""

    text: str
    how: Literal["exact", "unchanged", "model"] = "exact"


@dataclass(frozen=True)
class Reading:
    """Lines of the file, from 1, that a part of a snippet could replace, and what would stand
    there. What is put in above a line has that line first and the one above it last."""

    first_line: int
    last_line: int
    text: str


class AmbiguousSnippet(EditRefused):
    """An edit fits a file in several ways, or in none. ``choices``: all lines of the file by each
    way; none where a text that is searched for stands in several places."""

    def __init__(
        self, message: str, readings: tuple[Reading, ...] = (), choices: tuple[Lines, ...] = ()
    ) -> None:
        super().__init__(message)
        self.readings, self.choices = readings, choices


def shown(lines: Sequence[str]) -> str:
    """Return the first line of ``lines`` that is not empty, cut for a message."""
    line = next((text.strip() for text in lines if text.strip()), "")
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}…"


def lines_range(spans: Sequence[tuple[int, int]]) -> str:
    """Return the first lines of ``spans`` for a message, counted from 1."""
    return ", ".join(str(start + 1) for start, _ in spans[:MOST_SHOWN])
