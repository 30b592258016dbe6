"""Several segments made into one, without their dead files, in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repo_index.ordering import Order, Tokens, frozen, heads_of, keep_living, merge_orders
from repo_index.segment import FACTS, Segment

_SLICE = 1 << 20
_IN_MEMORY = 1 << 24


@dataclass(frozen=True)
class MergeBuffers:
    """Working arrays of a merge: in memory while small, in files of ``folder`` above that."""

    folder: Path | None = None
    in_memory: int = _IN_MEMORY
    """Elements of the largest array that stays in memory."""

    def array(self, length: int, dtype: type[np.unsignedinteger]) -> NDArray[Any]:
        """Return an array that is gone from the disk when nothing refers to it."""
        if length <= self.in_memory or self.folder is None:
            return np.empty(length, dtype)
        with tempfile.TemporaryFile(dir=self.folder) as file:
            return np.memmap(file, dtype, "w+", shape=(length,))


def merge_segments(
    segments: Sequence[tuple[Segment, NDArray[np.bool_]]],
    *,
    scratch: MergeBuffers | None = None,
    pause: Callable[[], None] = lambda: None,
) -> Segment:
    """One segment of all living files, in the order of ``segments`` (segments of one token type
    with the dead among their files, bool [files]), equal to one made afresh. ``pause`` is called
    between slices of work; it may wait, or raise to give up."""
    scratch = scratch or MergeBuffers()
    dtype = segments[0][0].tokens.dtype.type
    separator = segments[0][0].separator
    paths: list[str] = []
    reasons: list[str] = []
    facts = []
    lengths = []
    for segment, dead in segments:
        living = np.flatnonzero(~dead)
        paths += [segment.paths[int(i)] for i in living]
        reasons += [segment.reasons[int(i)] if segment.reasons else "" for i in living]
        facts.append(segment.facts[living] if len(segment.facts) else np.zeros(len(living), FACTS))
        lengths.append(segment.lengths[living])
    all_lengths = np.concatenate(lengths)
    ends = np.cumsum(all_lengths + 1)
    starts = (ends - all_lengths).astype(np.uint32)
    tokens = scratch.array(1 + int(ends[-1]) if len(ends) else 1, dtype)
    tokens[0] = separator
    orders: list[Order] = []
    first = 0
    for segment, dead in segments:
        living = np.flatnonzero(~dead)
        shifts = np.zeros(len(segment.paths), np.int64)
        shifts[living] = starts[first : first + len(living)].astype(np.int64) - segment.starts[
            living
        ].astype(np.int64)
        for index in living:
            start = int(segment.starts[index])
            stop = start + int(segment.lengths[index])
            tokens[start + shifts[index] : stop + shifts[index]] = segment.tokens[start:stop]
            tokens[stop + shifts[index]] = separator
        first += len(living)
        orders.append(_living_order(segment, dead, shifts, scratch, pause))
    order = _merged(frozen(tokens), separator, orders, scratch, pause)
    return Segment(
        frozen(tokens),
        frozen(order),
        frozen(starts),
        tuple(paths),
        frozen(np.concatenate(facts)),
        tuple(reasons),
        frozen(heads_of(tokens, order)),
    )


def _living_order(
    segment: Segment,
    dead: NDArray[np.bool_],
    shifts: NDArray[np.int64],
    scratch: MergeBuffers,
    pause: Callable[[], None],
) -> Order:
    out = scratch.array(len(segment.order), np.uint32)
    count = 0
    for start in range(0, len(segment.order), _SLICE):
        pause()
        positions = segment.order[start : start + _SLICE]
        count += keep_living(positions, segment.starts, shifts, dead, out[count:])
    return out[:count]


def _merged(
    tokens: Tokens,
    separator: int,
    orders: list[Order],
    scratch: MergeBuffers,
    pause: Callable[[], None],
) -> Order:
    """Return all orders merged, two neighbours at a time. Neighbours, because positions whose
    contexts are equal keep the order of the stream."""
    while len(orders) > 1:
        sums = [len(a) + len(b) for a, b in pairwise(orders)]
        pair = sums.index(min(sums))
        first, right = frozen(orders[pair]), frozen(orders[pair + 1])
        out = scratch.array(len(first) + len(right), np.uint32)
        state = np.zeros(2, np.int64)
        while state.sum() < len(out):
            pause()
            merge_orders(tokens, separator, first, right, out, state, _SLICE)
        orders[pair : pair + 2] = [out]
    return orders[0] if orders else np.empty(0, np.uint32)
