"""Forwards that one thread hands over to another, which stands by in compiled code.

To wake a thread takes 90 us, a fifth of a forward of eight rows: it has to be given a core and the
interpreter's lock, and takes sixty arrays apart. A thread that stands by has all that stays the
same from one forward to the next, and finds the rest in a ``Job``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel import meeting as meeting_of
from accel.compiled_attention import Floats
from accel.draft_tree import TokenArray
from accel.drawing import Draws
from accel.meeting import await_done, publish_job
from accel.sources.compiled import compiled_with

PAST, ROWS, PARENTS, LOGITS, WALKS, BY_COLUMNS, FIRST, FIRST_MASK, NUMBER = range(9)
SEED, PLACE = range(9, 11)

LOGIT_ROWS = 16
"""Rows at most whose logits are written."""


class Job(NamedTuple):
    """What changes from one forward to the next.

    numbers: int64, at ``PAST``, ``ROWS`` and so on; sampling: float64 [2], temperature and nucleus;
    tokens, offsets, parents: int32 [rows]; mask: float32 [rows * rows]; logits: float32
    [LOGIT_ROWS, >= vocabulary], where they are written. Of a forward without mask rows.
    """

    numbers: NDArray[np.int64]
    sampling: NDArray[np.float64]
    tokens: TokenArray
    offsets: TokenArray
    parents: TokenArray
    mask: Floats
    logits: Floats

    @classmethod
    def room(cls, rows: int, vocabulary: int) -> Job:
        """Room for forwards of ``rows`` rows."""
        return cls(
            np.zeros(11, np.int64),
            np.zeros(2),
            np.empty(rows, np.int32),
            np.empty(rows, np.int32),
            np.empty(rows, np.int32),
            np.empty(rows * rows, np.float32),
            np.empty((LOGIT_ROWS, vocabulary), np.float32),
        )


@compiled_with(meeting_of, borrows=True)
def hand_over(
    job: Job,
    tokens: TokenArray,
    offsets: TokenArray,
    mask: Floats,
    past: int,
    parents: TokenArray,
    logits: int,
    walks: bool,
    by_columns: bool,
    first: int,
    first_mask: int,
    draws: Draws,
    meeting: NDArray[np.int64],
    number: int,
) -> None:
    """Give the rows from ``first`` on to the other thread; see ``compiled_forward.forward``."""
    await_done(meeting)
    rows = len(tokens)
    for row in range(rows):
        job.tokens[row], job.offsets[row] = tokens[row], offsets[row]
        for column in range(rows):
            job.mask[row * rows + column] = mask[row, column]
    for node in range(len(parents)):
        job.parents[node] = parents[node]
    numbers = job.numbers
    numbers[PAST], numbers[ROWS], numbers[PARENTS] = past, rows, len(parents)
    numbers[LOGITS], numbers[WALKS], numbers[BY_COLUMNS] = logits, walks, by_columns
    numbers[FIRST], numbers[FIRST_MASK], numbers[NUMBER] = first, first_mask, number
    numbers[SEED], numbers[PLACE] = draws.seed, draws.place
    job.sampling[0], job.sampling[1] = draws.temperature, draws.top_p
    publish_job(meeting, number + 1)


@njit(nogil=True, cache=True, inline="always")
def rows_of(job: Job) -> tuple[TokenArray, TokenArray, Floats, TokenArray, Floats]:
    """Tokens, offsets, mask and parents that were handed over, and where logits are written."""
    rows, parents = job.numbers[ROWS], job.numbers[PARENTS]
    mask = job.mask[: rows * rows].reshape(rows, rows)
    logits = job.logits[: job.numbers[LOGITS]]
    return job.tokens[:rows], job.offsets[:rows], mask, job.parents[:parents], logits


@njit(nogil=True, cache=True, inline="always")
def draws_of(job: Job) -> Draws:
    """How tokens are chosen."""
    temperature, top_p = job.sampling[0], job.sampling[1]
    return Draws(temperature, top_p, job.numbers[SEED], job.numbers[PLACE])


__all__ = [
    "BY_COLUMNS",
    "FIRST",
    "FIRST_MASK",
    "LOGIT_ROWS",
    "NUMBER",
    "PAST",
    "ROWS",
    "WALKS",
    "Job",
    "draws_of",
    "hand_over",
    "rows_of",
]
