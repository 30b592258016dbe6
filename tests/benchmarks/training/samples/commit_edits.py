"""Edits by instruction from commits: the subject is what was asked for."""

from __future__ import annotations

import difflib
import random
import re
from dataclasses import dataclass
from typing import NamedTuple

from tests.benchmarks.training.samples.code import CommitChange

SUBJECT_CHARACTERS = (10, 110)
MOST_LINES = 45
WIDENING = (0, 1, 2, 4, 8)
"""Lines around what changed that are selected, too."""
AROUND = (0, 0, 5, 10)
"""Lines around the selection that are shown."""


class LineBlock(NamedTuple):
    """Lines of the old and the new text that are alike, or give way to one another."""

    what: str
    old_start: int
    old_end: int
    new_start: int
    new_end: int

    @property
    def is_change(self) -> bool:
        """Whether they differ."""
        return self.what != "equal"


@dataclass(frozen=True)
class InstructedEdit:
    """What is asked of a selection in its file, and the answer."""

    instruction: str
    selection: str
    answer: str
    before: str
    after: str
    language: str
    path: str


def blocks_of(old: list[str], new: list[str]) -> list[LineBlock]:
    """How lines became others."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [LineBlock(*code) for code in matcher.get_opcodes()]


def commit_edit(change: CommitChange, rng: random.Random) -> InstructedEdit | None:
    """The lines that a commit changed, with a few around, asked for by its subject. None where the
    subject says too little of what changed, or that is too long."""
    old, new = change.old.splitlines(keepends=True), change.new.splitlines(keepends=True)
    blocks = blocks_of(old, new)
    if not _is_described(change.subject, old, new, blocks):
        return None
    changed = [block for block in blocks if block.is_change]
    first, last = changed[0], changed[-1]
    if _is_long(first, last):
        first = last = rng.choice(changed)
    if _is_long(first, last):
        return None
    start = max(0, first.old_start - rng.choice(WIDENING))
    end = min(len(old), last.old_end + rng.choice(WIDENING))
    new_start = first.new_start - (first.old_start - start)
    new_end = last.new_end + (end - last.old_end)
    is_same_around = (
        old[start : first.old_start] == new[new_start : first.new_start]
        and old[last.old_end : end] == new[last.new_end : new_end]
    )
    if new_start < 0 or not is_same_around:
        return None
    shown = rng.choice(AROUND)
    return InstructedEdit(
        change.subject,
        "".join(old[start:end]),
        "".join(new[new_start:new_end]),
        "".join(old[max(0, start - shown) : start]),
        "".join(old[end : end + shown]),
        change.language,
        change.path,
    )


def _is_described(subject: str, old: list[str], new: list[str], blocks: list[LineBlock]) -> bool:
    """Whether a third of the subject's words, the verb left out, stand in the changed lines."""
    words = {word.lower() for word in re.findall(r"[A-Za-z_]{4,}", subject)[1:]}
    lines = [
        line
        for block in blocks
        if block.is_change
        for line in [*old[block.old_start : block.old_end], *new[block.new_start : block.new_end]]
    ]
    if not words or not lines or not SUBJECT_CHARACTERS[0] < len(subject) < SUBJECT_CHARACTERS[1]:
        return False
    text = "".join(lines).lower()
    return sum(word in text for word in words) >= max(1, len(words) // 3)


def _is_long(first: LineBlock, last: LineBlock) -> bool:
    old_lines, new_lines = last.old_end - first.old_start, last.new_end - first.new_start
    return max(old_lines, new_lines) > MOST_LINES
