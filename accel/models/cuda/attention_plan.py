"""What the attention of one forward computes, as numbers that go to the device in one copy.

Keys are split at fixed positions of the text, every ``split`` tokens, and each part is computed by
itself and merged with the others in order. So a row's numbers hang on its own path alone: neither
on the tree around it, nor on what is committed already, nor on other requests.

A *work* is one split for a block of rows. The committed splits of a request are shared by blocks of
any of its rows; the split in which the committed text ends, and those after it, by blocks of a
*run*, rows of which each follows the one before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel.native.numba_cache import compiled_with

IntArray = NDArray[np.int32]

TOKEN, POSITION, PLACE = 0, 1, 2
FIRST_WORK, WORKS, LANE = 3, 4, 5
"""Of the committed splits: the work of the first, how many, and the row within its block."""
TAIL_WORK, TAIL_WORKS, TAIL_LANE = 6, 7, 8
"""The same of the splits after these."""
FIELDS = 9
"""Numbers of a row."""
WORK_FIELDS = 4
"""First row, rows, where its keys' places begin in the list, and the position of the first."""


@dataclass(frozen=True, slots=True)
class Splits:
    """How attention is divided. split: keys of a work; block: rows of a work at most."""

    split: int
    block: int

    def most_works(self, width: int, places: int, longest: int) -> int:
        """Works of a forward of ``width`` rows over texts that hold ``places`` together, each at
        most ``longest`` tokens."""
        blocks = -(-width // self.block)
        shared = min(blocks * (places // self.split), width * (longest // self.split))
        return shared + width * (2 + width // self.split)

    def most_listed(self, width: int, places: int) -> int:
        """Numbers of the list of places."""
        return places + width * (self.split + width)


@dataclass(frozen=True, slots=True)
class PooledRows:
    """Rows of several requests one after another.

    tokens: int32 [rows]; parents: int32 [rows], as in each request's ``ForwardBatch``; positions:
    int32 [rows], in the text; places: int32 [rows], in the pool; starts: the first row of each
    request and at last their number, int32 [requests + 1]; lengths: committed tokens, int32
    [requests]; committed: the places of these, int32, those of each request from
    ``committed_starts`` on.
    """

    tokens: IntArray
    parents: IntArray
    positions: IntArray
    places: IntArray
    starts: IntArray
    lengths: IntArray
    committed: IntArray
    committed_starts: IntArray


class AttentionPlan:
    """Room for the plan of a forward, filled anew each time.

    ``numbers``: int32, a table [FIELDS, width], then the number of works and where the list of
    places begins, the works [n, WORK_FIELDS], and the list.
    """

    def __init__(self, splits: Splits, width: int, places: int, longest: int) -> None:
        self.splits, self.width = splits, width
        self.most_works = splits.most_works(width, places, longest)
        self.numbers = np.zeros(
            FIELDS * width + 2 + WORK_FIELDS * self.most_works + splits.most_listed(width, places),
            np.int32,
        )
        self._works = np.zeros((self.most_works, WORK_FIELDS), np.int32)

    def fill(self, rows: PooledRows, first: int, behind: int) -> IntArray:
        """The numbers in use for the rows from ``first`` on that come before ``behind``."""
        assert behind - first <= self.width, "more rows than the forward is wide"
        count, table = behind - first, self.numbers[: FIELDS * self.width].reshape(FIELDS, -1)
        table[:] = 0
        table[TOKEN, :count] = rows.tokens[first:behind]
        table[POSITION, :count] = rows.positions[first:behind]
        table[PLACE, :count] = rows.places[first:behind]
        used = _fill(
            *(rows.parents, rows.positions, rows.places, rows.starts, rows.lengths),
            *(rows.committed, rows.committed_starts, first, behind),
            *(self.splits.split, self.splits.block, table, self._works, self.numbers),
        )
        return self.numbers[:used]


@compiled_with()
def _fill(  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    parents, positions, places, starts, lengths, committed, committed_starts, window, window_end,
    split, block, table, works, numbers,
):  # fmt: skip
    # The list is written after room for all works, and moved to where they end.
    head = table.size
    listed = numbers[head + 2 + works.size :]
    work = end = 0
    for request in range(len(lengths)):
        begins, length, own = starts[request], lengths[request], committed_starts[request]
        first, last = max(begins, window), min(starts[request + 1], window_end)
        whole = length // split if first < last else 0
        for column in range(whole * split):
            listed[end + column] = committed[own + column]
        for top in range(first, last, block):
            rows = min(block, last - top)
            for row in range(top, top + rows):
                table[FIRST_WORK, row - window] = work
                table[WORKS, row - window] = whole
                table[LANE, row - window] = row - top
            work = _add_works(works, work, top - window, rows, 0, whole, end, split)
        end += whole * split
        run = first
        while run < last:
            behind = run + 1
            while behind < last and parents[behind] == behind - begins - 1:
                behind += 1
            begin = end
            for column in range(whole * split, length):
                listed[end] = committed[own + column]
                end += 1
            end = begin + positions[behind - 1] + 1 - whole * split
            row, place = behind - begins - 1, end - 1
            while row >= 0:
                listed[place] = places[begins + row]
                row, place = parents[begins + row], place - 1
            for top in range(run, behind, block):
                rows = min(block, behind - top)
                count = 0
                for row in range(top, top + rows):
                    count = positions[row] // split - whole + 1
                    table[TAIL_WORK, row - window] = work
                    table[TAIL_WORKS, row - window] = count
                    table[TAIL_LANE, row - window] = row - top
                work = _add_works(works, work, top - window, rows, whole, count, begin, split)
            run = behind
    numbers[head], numbers[head + 1] = work, head + 2 + work * WORK_FIELDS
    numbers[head + 2 : head + 2 + work * WORK_FIELDS] = works[:work].reshape(-1)
    at = head + 2 + work * WORK_FIELDS
    for column in range(end):
        numbers[at + column] = listed[column]
    return at + end


@compiled_with()
def _add_works(works, work, top, rows, splits_before, count, listed, split):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    for column in range(count):
        works[work, 0], works[work, 1] = top, rows
        works[work, 2] = listed + column * split
        works[work, 3] = (splits_before + column) * split
        work += 1
    return work
