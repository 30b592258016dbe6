"""Next edits of commits, in the format of Sweep's model card (sweep-next-edit, format A)."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.benchmarks.training.samples.code import CommitChange
from tests.benchmarks.training.samples.commit_edits import LineBlock, blocks_of

MOST_CHANGES = 8
MOST_OLD_LINES, MOST_NEW_LINES = 12, 14
WINDOW_REACH = 10
"""Lines above and below the cursor."""
NOTHING_SHARE = 1 / 8
"""Samples with nothing left to change in the window."""
LONE_SHARE = 1 / 4
TYPED_SHARE = 1 / 3
"""Samples in which the person began to type the change."""


@dataclass(frozen=True)
class NextEdit:
    """Recent changes of a file as ``(original, updated)``, and the window before and after the
    next."""

    path: str
    recent: list[tuple[str, str]]
    original: str
    """The window before the person began the change at hand."""
    current: str
    updated: str

    @property
    def parts(self) -> list[str]:
        """The files of the prompt, as they stand behind one file mark each."""
        diffs = [f"{self.path}.diff\noriginal:\n{old}updated:\n{new}" for old, new in self.recent]
        return [
            *diffs,
            f"original/{self.path}\n{self.original}",
            f"current/{self.path}\n{self.current}",
            f"updated/{self.path}\n",
        ]


def next_edit(change: CommitChange, rng: random.Random) -> NextEdit | None:
    """One change of a commit as the next edit, with some of the others as made already; None where
    the commit does not show one."""
    old, new = change.old.splitlines(keepends=True), change.new.splitlines(keepends=True)
    changes = [block for block in blocks_of(old, new) if block.is_change]
    if not 1 <= len(changes) <= MOST_CHANGES or any(map(_is_long, changes)):
        return None
    if len(changes) == 1 and rng.random() >= LONE_SHARE:
        return None
    coming = rng.choice(changes)
    done = _done_before(changes, coming, rng)
    is_typing = (not done or rng.random() < TYPED_SHARE) and coming.new_end > coming.new_start
    leaves = rng.random() < NOTHING_SHARE
    if not done and not (is_typing and not leaves):
        return None
    lines, place = _as_it_stands(old, new, changes, done, coming)
    size = coming.old_end - coming.old_start
    if is_typing and not leaves:
        lines[place : place + size] = [_half_typed(new[coming.new_start], rng)]
        size = 1
    cursor = rng.randrange(len(lines)) if leaves else place + rng.choice([0, 0, 0, -1, 1, 2, -3])
    cursor = min(max(cursor, 0), len(lines) - 1)
    first, end = max(0, cursor - WINDOW_REACH), min(len(lines), cursor + WINDOW_REACH + 1)
    is_inside = first <= place and place + size <= end
    if is_inside == leaves or (leaves and first <= place + size and place <= end):
        return None
    window = "".join(lines[first:end])
    wanted = new[coming.new_start : coming.new_end]
    updated = "".join([*lines[first:place], *wanted, *lines[place + size : end]])
    was_at = slice(max(0, coming.old_start - WINDOW_REACH), coming.old_end + WINDOW_REACH)
    return NextEdit(
        change.path,
        [shown_change(old, new, block, rng) for block in done[-3:]],
        "".join(old[was_at]) if is_typing and not leaves else window,
        window,
        window if leaves else updated,
    )


def _is_long(block: LineBlock) -> bool:
    return (
        block.old_end - block.old_start > MOST_OLD_LINES
        or block.new_end - block.new_start > MOST_NEW_LINES
    )


def _done_before(
    changes: list[LineBlock], coming: LineBlock, rng: random.Random
) -> list[LineBlock]:
    """Those above, mostly, or some of all others."""
    others = [block for block in changes if block is not coming]
    if rng.random() < 0.6:
        return [block for block in others if block.old_start < coming.old_start]
    return rng.sample(others, rng.randint(0, len(others)))


def _as_it_stands(
    old: list[str],
    new: list[str],
    changes: list[LineBlock],
    done: list[LineBlock],
    coming: LineBlock,
) -> tuple[list[str], int]:
    """The lines with some of the changes made, and the place of the one that comes."""
    lines: list[str] = []
    place = at = 0
    for block in changes:
        lines += old[place : block.old_start]
        if block is coming:
            at = len(lines)
        if block in done:
            lines += new[block.new_start : block.new_end]
        else:
            lines += old[block.old_start : block.old_end]
        place = block.old_end
    return [*lines, *old[place:]], at


def _half_typed(line: str, rng: random.Random) -> str:
    indent = len(line) - len(line.lstrip())
    return line[: rng.randint(min(indent, len(line) - 1), len(line) - 1)].rstrip("\n") + "\n"


def shown_change(
    old: list[str], new: list[str], block: LineBlock, rng: random.Random
) -> tuple[str, str]:
    """The lines of a change before and after, with up to two on both sides."""
    above = min(rng.choice([0, 1, 2]), block.old_start, block.new_start)
    below = rng.choice([0, 1, 2])
    return (
        "".join(old[block.old_start - above : block.old_end + below]),
        "".join(new[block.new_start - above : block.new_end + below]),
    )
