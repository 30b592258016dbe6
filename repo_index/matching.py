"""Longest-suffix lookup in one ordered stream, and the choice of continuations, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from repo_index.ordering import DEPTH, Order, Tokens

Ranges = NDArray[np.int64]
"""int64 [segments, DEPTH + 1, 2]: at index k the part of the order that matches k tokens."""


@njit(nogil=True, cache=True, inline="always")
def _first_head(heads: Tokens, low: int, high: int, back: int, least: int) -> int:
    """First of the heads ``low`` to ``high`` whose token ``back`` is ``least`` or greater."""
    while low < high:
        middle = (low + high) >> 1
        if heads[middle, back] < least:
            low = middle + 1
        else:
            high = middle
    return low


@njit(nogil=True, cache=True, inline="always")
def _first_place(tokens: Tokens, order: Order, low: int, high: int, length: int, least: int) -> int:
    """First place in ``order[low:high]`` whose token ``length`` before is ``least`` or greater."""
    while low < high:
        middle = (low + high) >> 1
        if tokens[order[middle] - length] < least:
            low = middle + 1
        else:
            high = middle
    return low


@njit(nogil=True, cache=True)
def match_ranges(
    tokens: Tokens,
    separator: int,
    order: Order,
    heads: Tokens,
    stride: int,
    context: NDArray[np.int32],
    longest: int,
    ranges: Ranges,
) -> int:
    """Find the parts of ``order`` that match 1, 2, ... last tokens of ``context``.

    heads: contexts of every ``stride``-th place of the order, or none. ranges: int64
    [DEPTH + 1, 2], written from index 1 to the length returned, which is the longest match, at most
    ``longest``. One token more narrows the part by two binary searches, in the heads first: they
    lie close together, while every place that is looked at in the order costs two distant reads.
    """
    low = 0
    high = len(order)
    for length in range(1, min(longest, DEPTH, len(context)) + 1):
        wanted = np.int64(context[len(context) - length])
        if low >= high or wanted < 0 or wanted >= separator:
            return length - 1
        first = (low + stride - 1) // stride
        last = max(first, min((high + stride - 1) // stride, len(heads)))
        begin = _first_head(heads, first, last, length - 1, wanted)
        end = _first_head(heads, begin, last, length - 1, wanted + 1)
        a = low if begin == first else (begin - 1) * stride + 1
        b = high if begin == last else begin * stride
        a = _first_place(tokens, order, a, b, length, wanted)
        if a >= high or tokens[order[a] - length] != wanted:
            return length - 1
        low = a
        a = max(low, low if end == first else (end - 1) * stride + 1)
        b = high if end == last else end * stride
        if tokens[order[b - 1] - length] != wanted:
            b = _first_place(tokens, order, a, b - 1, length, wanted + 1)
        high = b
        ranges[length, 0] = low
        ranges[length, 1] = high
    return min(longest, DEPTH, len(context))


@njit(nogil=True, cache=True, inline="always")
def _file_of(starts: NDArray[np.uint32], position: int) -> int:
    """Index of the last file that starts at or before ``position``."""
    low = 0
    high = len(starts)
    while high - low > 1:
        middle = (low + high) >> 1
        if starts[middle] <= position:
            low = middle
        else:
            high = middle
    return low


@njit(nogil=True, cache=True, inline="always")
def _copy_until_separator(
    tokens: Tokens, separator: int, position: int, out: NDArray[np.int32]
) -> None:
    """What follows ``position`` in its file, -1 behind its end."""
    copied = 0
    while copied < len(out) and tokens[position + copied] != separator:
        out[copied] = tokens[position + copied]
        copied += 1
    out[copied:] = -1


@njit(nogil=True, cache=True)
def drop_dead_rings(
    order: Order,
    starts: NDArray[np.uint32],
    dead: NDArray[np.bool_],
    ranges: Ranges,
    longest: int,
    limit: int,
) -> int:
    """The longest match that has an occurrence in a living file.

    Only rings (occurrences of exactly one match length) of at most ``limit`` are looked through; a
    larger one is taken to live.
    """
    for length in range(longest, 0, -1):
        inner_low = ranges[length + 1, 0] if length < longest else ranges[length, 1]
        inner_high = ranges[length + 1, 1] if length < longest else ranges[length, 1]
        low = ranges[length, 0]
        high = ranges[length, 1]
        if inner_low - low + high - inner_high > limit:
            return length
        for i in range(low, high):
            if inner_low <= i < inner_high:
                continue
            if not dead[_file_of(starts, order[i])]:
                return length
    return 0


@njit(nogil=True, cache=True)
def plan_rows(
    ranges: Ranges, longest: NDArray[np.int64], limit: int, floor: int, rows: NDArray[np.int64]
) -> int:
    """Share ``limit`` rows among match lengths, the longest first; returns how many are planned.

    ranges: int64 [segments, DEPTH + 2, 2]; longest: int64 [segments]; rows: int64 [DEPTH + 2, 2],
    at index k the rows of match length k and how many occurrences of exactly this length there are.
    Every shorter length is promised ``floor`` rows before a longer one takes all.
    """
    top = 0
    for s in range(len(longest)):
        top = max(top, longest[s])
        for length in range(1, longest[s] + 1):
            count = ranges[s, length, 1] - ranges[s, length, 0]
            if length < longest[s]:
                count -= ranges[s, length + 1, 1] - ranges[s, length + 1, 0]
            rows[length, 1] += count
    promised = 0
    for length in range(1, top + 1):
        promised += min(floor, rows[length, 1])
    left = limit
    for length in range(top, 0, -1):
        promised -= min(floor, rows[length, 1])
        rows[length, 0] = min(rows[length, 1], max(left - promised, min(floor, left)))
        left -= rows[length, 0]
    return limit - left


@njit(nogil=True, cache=True)
def gather_rows(
    tokens: Tokens,
    separator: int,
    order: Order,
    starts: NDArray[np.uint32],
    dead: NDArray[np.bool_],
    ranges: Ranges,
    longest: int,
    rows: NDArray[np.int64],
    seen: NDArray[np.int64],
    seed: int,
    source: int,
    first_file: int,
    hidden: NDArray[np.int64],
    first_row: int,
    out_tokens: NDArray[np.int32],
    out_lengths: NDArray[np.int32],
    out_counts: NDArray[np.float32],
    out_sources: NDArray[np.int8],
    out_files: NDArray[np.int32],
) -> int:
    """Write the rows of one segment from ``first_row`` on; returns the row after the last.

    The occurrences of one match length, over all segments, are numbered in order; every
    ``count / rows``-th is taken, from a start that depends on ``seed``: each occurrence is as
    likely as any other, whatever follows it. ``seen`` (int64 [DEPTH + 2]) counts those of segments
    before. Occurrences in dead files are left out, which keeps the sample unbiased.
    """
    row = first_row
    for length in range(longest, 0, -1):
        low = ranges[length, 0]
        high = ranges[length, 1]
        inner_low = high
        inner_high = high
        if length < longest:
            inner_low = ranges[length + 1, 0]
            inner_high = ranges[length + 1, 1]
        count = inner_low - low + high - inner_high
        wanted = rows[length, 0]
        total = rows[length, 1]
        before = seen[length]
        seen[length] += count
        if wanted == 0 or count == 0:
            continue
        step = total / wanted
        start = 0.0
        if wanted < total:
            mixed = (np.uint64(seed) + np.uint64(length)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
            mixed *= np.uint64(0xBF58476D1CE4E5B9)
            start = np.float64(mixed >> np.uint64(11)) / 9007199254740992.0 * step
        sample = np.int64(max(0.0, np.ceil((before - start) / step)))
        while sample > 0 and np.int64(start + (sample - 1) * step) >= before:
            sample -= 1
        while sample < wanted:
            index = np.int64(start + sample * step)
            sample += 1
            if index < before:
                continue
            index -= before
            if index >= count:
                break
            place = low + index
            if place >= inner_low:
                place += inner_high - inner_low
            position = np.int64(order[place])
            if hidden[0] <= position < hidden[1]:
                continue
            file = _file_of(starts, position)
            if len(dead) and dead[file]:
                continue
            _copy_until_separator(tokens, separator, position, out_tokens[row])
            out_lengths[row] = length
            out_counts[row] = step
            out_sources[row] = source
            out_files[row] = first_file + file
            row += 1
    return row


@njit(nogil=True, cache=True)
def longest_first(lengths: NDArray[np.int32], places: NDArray[np.int64]) -> None:
    """Where every row goes when longer matches come first and ties keep their order."""
    ends = np.zeros(DEPTH + 2, np.int64)
    for length in lengths:
        ends[length] += 1
    for length in range(DEPTH - 1, -1, -1):
        ends[length] += ends[length + 1]
    for row in range(len(lengths)):
        length = lengths[row]
        places[ends[length + 1]] = row
        ends[length + 1] += 1


@njit(nogil=True, cache=True)
def seed_of(context: NDArray[np.int32]) -> int:
    """A number that depends on the last ``DEPTH`` tokens, so that equal lookups answer alike."""
    seed = np.uint64(0xCBF29CE484222325)
    for i in range(max(0, len(context) - DEPTH), len(context)):
        seed = (seed ^ np.uint64(context[i] & 0xFFFFFFFF)) * np.uint64(0x100000001B3)
    return np.int64(seed >> np.uint64(1))
