"""The answer that an instruction of a known kind makes likely: the edit made by rule, as a draft.

"Remove the docstring" leaves little to guess. Where ``accel.instructions`` recognises an
instruction, its edit is made on the syntax tree, as the training examples were; the model verifies
it like every other draft, so a wrong guess costs time alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from accel.instructions import recognise
from accel.training.edits_by_rule import by_rule
from accel.training.region import Replacement

_IN_QUESTION = re.compile(r"Edit the code as instructed: (.+)")
_CONTROL = re.compile(r"<\|[^|<>]*\|>")
_LONGEST = 40_000
"""Characters of code that are parsed for it."""


class Foreseen(NamedTuple):
    """Changes in their order, and what of the instruction stands in them."""

    changes: list[Replacement]
    values: tuple[str, ...] = ()


def foreseen(instruction: str, original: str) -> Foreseen:
    """What becomes of ``original`` by rule; no changes where the instruction or the code is not of
    a kind that is known. ``instruction`` may be what stands before the code in a prompt."""
    asked = _IN_QUESTION.search(instruction)
    said = asked[1] if asked else _CONTROL.sub(" ", instruction)
    known = recognise(said, original) if len(original) <= _LONGEST else None
    if known is None:
        return Foreseen([])
    return Foreseen(by_rule(known.kind, known.slots, original, known.within), known.parts[1::2])
