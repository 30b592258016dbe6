"""The path of each row of a forward: computed once, and read by every head of every layer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.models.cpu.delta_net.shape import CHUNK, TAPS
from accel.native.numba_cache import compiled

RowPlan = NDArray[np.int32]
"""int32 [rows, 5 + CHUNK], a line for each row: the rows that stand one, two and three before it,
counted from the first of its request, or from the end of the committed ones, below zero; the state
that its chunk begins with, 0 for the committed one; its place in the chunk; and the rows before it
in the chunk, in the order of the text: committed ones of the chunk first, then those of the
request."""

STATE, PLACE, ABOVE = TAPS, TAPS + 1, TAPS + 2
COLUMNS = ABOVE + CHUNK


@compiled(borrows=True)
def plan_rows(
    parents: TokenArray, held: int, ends_chunk: bool, plan: RowPlan, origins: TokenArray
) -> int:
    """Write the lines of a request's rows, and the last row of each chunk that ends among them.

    parents: int32 [rows], -1 for what follows the committed text; held: committed rows of its
    chunk; ends_chunk: whether the state after the last row is made, too, where a chunk ends with
    it. Returns how many states are made. origins: int32 [rows].
    """
    chunks = 0
    for row in range(len(parents)):
        parent, line = parents[row], plan[row]
        line[0] = parent
        for tap in range(1, TAPS):
            line[tap] = plan[parent, tap - 1] if parent >= 0 else -1 - tap
        if parent < 0:
            line[STATE], line[PLACE] = 0, held
            for kept_row in range(held):
                line[ABOVE + kept_row] = kept_row
            continue
        above = plan[parent]
        kept_row = above[PLACE]
        if kept_row < CHUNK - 1:
            line[STATE], line[PLACE] = above[STATE], kept_row + 1
            for before in range(kept_row):
                line[ABOVE + before] = above[ABOVE + before]
            line[ABOVE + kept_row] = held + parent
            continue
        state = chunks
        while state > 0 and origins[state - 1] != parent:
            state -= 1
        if state == 0:
            origins[chunks] = parent
            chunks += 1
            state = chunks
        line[STATE], line[PLACE] = state, 0
    last = len(parents) - 1
    if ends_chunk and plan[last, PLACE] == CHUNK - 1:
        origins[chunks] = last
        chunks += 1
    return chunks
