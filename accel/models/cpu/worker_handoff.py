"""Forwards that one thread hands over to another, which stands by in compiled code.

To wake a thread takes a good part of a small forward: it has to be given a core and the
interpreter's lock, and takes sixty arrays apart. A thread that stands by has all that stays the
same from one forward to the next, and finds the rest in a ``Job``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.models.cpu import barrier as meeting_of
from accel.models.cpu.attention import Floats
from accel.models.cpu.barrier import await_done, publish_job
from accel.models.cpu.task import Given, Share, Wanted
from accel.native.numba_cache import compiled_with

_PAST, _ROWS, _PARENTS, _LOGITS, _WALKS, _BY_COLUMNS, _FIRST, _NUMBER = range(8)

LOGIT_ROWS = 16
"""Rows at most whose logits are written."""


class Job(NamedTuple):
    """What changes from one forward to the next.

    numbers: int64, at ``_PAST``, ``_ROWS`` and so on; tokens, offsets, parents: int32 [rows];
    mask: float32 [rows * rows]; logits: float32 [LOGIT_ROWS, >= vocabulary], where they are
    written.
    """

    numbers: NDArray[np.int64]
    tokens: TokenArray
    offsets: TokenArray
    parents: TokenArray
    mask: Floats
    logits: Floats

    @classmethod
    def room(cls, rows: int, vocabulary: int) -> Job:
        """Room for forwards of ``rows`` rows."""
        return cls(
            np.zeros(8, np.int64),
            np.empty(rows, np.int32),
            np.empty(rows, np.int32),
            np.empty(rows, np.int32),
            np.empty(rows * rows, np.float32),
            np.empty((LOGIT_ROWS, vocabulary), np.float32),
        )


@compiled_with(meeting_of, borrows=True)
def hand_over(
    job: Job, given: Given, wanted: Wanted, share: Share, meeting: NDArray[np.int64], number: int
) -> None:
    """Give the other thread its share; it meets this one by the numbers after ``number``."""
    await_done(meeting)
    rows = len(given.tokens)
    for row in range(rows):
        job.tokens[row], job.offsets[row] = given.tokens[row], given.offsets[row]
        for column in range(rows):
            job.mask[row * rows + column] = given.mask[row, column]
    for node in range(len(wanted.parents)):
        job.parents[node] = wanted.parents[node]
    numbers = job.numbers
    numbers[_PAST], numbers[_ROWS], numbers[_PARENTS] = given.past, rows, len(wanted.parents)
    numbers[_LOGITS], numbers[_WALKS] = len(wanted.logits), wanted.walks
    numbers[_BY_COLUMNS], numbers[_FIRST] = share.by_columns, share.first
    numbers[_NUMBER] = number
    publish_job(meeting, number + 1)


@compiled_with(borrows=True, forceinline=True)
def taken(job: Job) -> tuple[Given, Wanted, Share, int]:
    """What was handed over, and the number after which both threads meet."""
    numbers = job.numbers
    rows, parents = numbers[_ROWS], numbers[_PARENTS]
    mask = job.mask[: rows * rows].reshape(rows, rows)
    return (
        Given(job.tokens[:rows], job.offsets[:rows], mask, numbers[_PAST]),
        Wanted(job.logits[: numbers[_LOGITS]], job.parents[:parents], numbers[_WALKS] > 0),
        Share(numbers[_BY_COLUMNS] > 0, numbers[_FIRST], rows),
        numbers[_NUMBER],
    )


__all__ = ["LOGIT_ROWS", "Job", "hand_over", "taken"]
