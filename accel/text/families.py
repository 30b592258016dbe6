"""Prompt formats of families of models, as the table ``families.json`` has them.

Sources: Qwen2.5-Coder (arXiv 2409.12186, section 3.2), StarCoder 2 (arXiv 2402.19173, section 5.1),
Seed-Coder (arXiv 2506.03524, section 3), the model cards of Mellum, Granite and Codestral.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any


class Order(str, Enum):
    """Position of the suffix in a fill-in-the-middle prompt."""

    SUFFIX_FIRST = "suffix_first"
    """PRE SUF suffix MID prefix: typing only appends, so the KV cache stays."""
    SUFFIX_PREFIX_MIDDLE = "suffix_prefix_middle"
    """SUF suffix PRE prefix MID."""
    PREFIX_FIRST = "prefix_first"
    """PRE lines SUF suffix MID line: the hole begins with the cursor's line, so that the KV cache
    stays while the line is typed."""


class FilePosition(Enum):
    """Position of the paths and texts of files in a prompt with several files."""

    BEFORE = "before"
    """All of it before the first marker of the hole."""
    PATH_INSIDE = "path_inside"
    """Other files before the markers; the path of this file after the prefix marker."""
    INSIDE = "inside"
    """All of it after the prefix marker, as the beginning of the prefix."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """Format of several files in a prompt: ``mark`` path newline text, for each of them. Marks
    without a token in the vocabulary are written as text."""

    mark: str
    position: FilePosition = FilePosition.BEFORE
    repository: str = ""
    """The token before the name of the repository; empty where models read none."""
    behind_name: str = ""
    between: str = ""
    """The text after that of a file, which ends with its line."""


@dataclass(frozen=True, slots=True)
class PromptFamily:
    """Names of tokens, and what is made of them. ``middle`` is None where the prefix simply goes
    on; a vocabulary with a token of ``lacks`` is of another family."""

    name: str
    prefix: str
    suffix: str
    middle: str | None
    order: Order
    files: FileFormat | None = None
    ends: tuple[str, ...] = ()
    """Tokens that end what is written in the hole, beside the three."""
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    @property
    def hole(self) -> tuple[str, ...]:
        """The tokens around a hole that it has."""
        return tuple(name for name in (self.prefix, self.suffix, self.middle) if name)


def _read(
    name: str, hole: list[Any], order: str, files: dict[str, Any] | None = None, **tokens: Any
) -> PromptFamily:
    """Return a family as the table has it."""
    if files is not None:
        files["position"] = FilePosition(files.get("position", "before"))
    several: dict[str, Any] = {key: tuple(value) for key, value in tokens.items()}
    format_ = FileFormat(**files) if files is not None else None
    return PromptFamily(name, hole[0], hole[1], hole[2], Order(order), format_, **several)


FAMILIES = tuple(
    _read(**row) for row in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
)
"""Those with more names come before those whose names they share. Granite 4 has a token for file
names and was not shown several files."""
