"""A replacement in a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class TextEdit(Generic[Place]):
    """The text from ``start`` to ``end`` becomes ``text``.

    Both are positions in the text before the edit: code points from its start (``TextEdit[int]``),
    or positions in a document (``TextEdit[Position]``).
    """

    start: Place
    end: Place
    text: str
    note: str = ""
    """What the user is told of it; empty for nothing."""
