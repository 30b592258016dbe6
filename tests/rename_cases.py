"""Renames of ``foo`` to ``bar``, read from ``data/renames.txt``: texts before and after.

Each begins with ``=== kind, language: name``. The declaration that is typed anew stands behind
``¦`` where it is not the first ``foo``. Of an ``unclear`` text the name is the reason for which its
rename is refused, of a ``marked`` one how many of its places have a note.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_HEAD = re.compile(r"^=== ([^,]+), ([^:]+): (.*)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RenameCase:
    """What a text becomes by a rename."""

    language: str
    name: str
    before: str
    after: str = ""

    @property
    def text(self) -> str:
        """The text without its mark."""
        return self.before.replace("¦", "")

    @property
    def declared(self) -> int:
        """Where the declaration is, in characters."""
        marked = self.before.find("¦")
        return marked if marked >= 0 else self.before.index("foo")

    def __str__(self) -> str:
        return f"{self.language}: {self.name}"


def rename_cases(*kinds: str) -> list[RenameCase]:
    """The cases of some kinds, in order."""
    _, *parts = _HEAD.split((Path(__file__).parent / "data" / "renames.txt").read_text("utf-8"))
    found = []
    for kind, language, name, text in zip(*(parts[at::4] for at in range(4)), strict=True):
        before, _, after = text.partition("--- becomes\n")
        if kind in kinds:
            found.append(RenameCase(language, name, before, after))
    assert found, kinds
    return found
