"""A replacement in a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

AnyPosition = TypeVar("AnyPosition")


@dataclass(frozen=True, slots=True)
class TextEdit(Generic[AnyPosition]):
    """The text from ``start`` to ``end`` becomes ``text``.

    Both are positions in the text before the edit: code points from its start (``TextEdit[int]``),
    or positions in a document (``TextEdit[Position]``).
    """

    start: AnyPosition
    end: AnyPosition
    text: str
    note: str = ""
    """What the user is told of it; empty for nothing."""
