"""Longest-suffix lookup in one ordered stream, and the choice of continuations, compiled.

What is mapped counts as resident, and one touch maps up to two megabytes of a file. So the order of
a stored segment, which every lookup touches in distant places, is not touched in its mapping but
read, ``WINDOW`` places at a time; where tokens are too many to be mapped, they are read as well.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from repo_index.ordering import DEPTH, Order, Tokens

Ranges = NDArray[np.int64]
"""int64 [segments, DEPTH + 1, 2]: at index k the part of the order that matches k tokens."""

Source = NDArray[np.int64]
"""int64 [3]: where a segment is read. The descriptor of its file, in which the order and the tokens
begin so many bytes behind the start; -1 in place of an offset for an array to be used as it is."""

WINDOW = 256
"""Places of the order that are read together; a search that began in the heads needs no more."""
_NO_WINDOW = 0xFFFFFFFF

READS = hasattr(os, "pread")
"""Whether the system can read so; else all arrays are used as they are."""

# pread of the C library: a read that moves no file position, so that threads may share the file.
_pread: Any = (
    types.ExternalFunction(
        "pread", types.intp(types.int32, types.voidptr, types.uintp, types.int64)
    )
    if READS
    else njit(lambda file, target, size, offset: 0)
)


@njit(nogil=True, cache=True)
def _read_window(source: Source, number: int, window: Order) -> None:
    size = 4 * WINDOW
    read = _pread(source[0], window.ctypes.data, size, source[1] + size * number)
    # A file that somebody cut short holds nothing there; the separator at 0 stands for it.
    window[max(0, read >> 2) : WINDOW] = 0
    window[WINDOW] = number


@njit(nogil=True, cache=True, inline="always")
def _position(order: Order, source: Source, window: Order, place: int) -> int:
    """The position at a place of the order. window: uint32 [WINDOW + 1], the places last read and
    which they are."""
    if source[1] < 0:
        return np.int64(order[place])
    if window[WINDOW] != place // WINDOW:
        _read_window(source, place // WINDOW, window)
    return np.int64(window[place % WINDOW])


@njit(nogil=True, cache=True)
def _read_tokens(source: Source, position: int, found: Tokens) -> None:
    size = found.itemsize
    read = _pread(source[0], found.ctypes.data, size * len(found), source[2] + size * position)
    found[max(0, read // size) :] = 0


@njit(nogil=True, cache=True, inline="always")
def _token(tokens: Tokens, source: Source, found: Tokens, position: int) -> int:
    """The token at a position. found: room for what is read, of the stream's type."""
    if source[2] < 0:
        return np.int64(tokens[position])
    _read_tokens(source, position, found)
    return np.int64(found[0])


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
def _first_place(
    tokens: Tokens,
    order: Order,
    source: Source,
    window: Order,
    found: Tokens,
    low: int,
    high: int,
    length: int,
    least: int,
) -> int:
    """First place in ``order[low:high]`` whose token ``length`` before is ``least`` or greater."""
    while low < high:
        middle = (low + high) >> 1
        position = _position(order, source, window, middle)
        if _token(tokens, source, found, position - length) < least:
            low = middle + 1
        else:
            high = middle
    return low


@njit(nogil=True, cache=True)
def match_ranges(
    tokens: Tokens,
    separator: int,
    order: Order,
    source: Source,
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
    found = np.empty(1, tokens.dtype)
    low_window = np.full(WINDOW + 1, _NO_WINDOW, np.uint32)
    high_window = np.full(WINDOW + 1, _NO_WINDOW, np.uint32)
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
        a = _first_place(tokens, order, source, low_window, found, a, b, length, wanted)
        if a >= high:
            return length - 1
        if begin < last and a == begin * stride:
            present = np.int64(heads[begin, length - 1])
        else:
            position = _position(order, source, low_window, a)
            present = _token(tokens, source, found, position - length)
        if present != wanted:
            return length - 1
        low = a
        a = max(low, low if end == first else (end - 1) * stride + 1)
        b = high if end == last else end * stride
        position = _position(order, source, high_window, b - 1)
        if _token(tokens, source, found, position - length) != wanted:
            b = _first_place(
                tokens, order, source, high_window, found, a, b - 1, length, wanted + 1
            )
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
    tokens: Tokens,
    separator: int,
    source: Source,
    found: Tokens,
    position: int,
    out: NDArray[np.int32],
) -> None:
    """What follows ``position`` in its file, -1 behind its end. found: as long as ``out``."""
    copied = 0
    if source[2] < 0:
        while copied < len(out) and tokens[position + copied] != separator:
            out[copied] = tokens[position + copied]
            copied += 1
    else:
        _read_tokens(source, position, found)
        while copied < len(out) and found[copied] != separator:
            out[copied] = found[copied]
            copied += 1
    out[copied:] = -1


@njit(nogil=True, cache=True)
def drop_dead_rings(
    order: Order,
    source: Source,
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
    window = np.full(WINDOW + 1, _NO_WINDOW, np.uint32)
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
            if not dead[_file_of(starts, _position(order, source, window, i))]:
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


@njit(nogil=True, cache=True, inline="always")
def _fraction(seed: int, length: int) -> float:
    """A number from 0 to 1 that looks random."""
    mixed = (np.uint64(seed) + np.uint64(length)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return np.float64(mixed >> np.uint64(11)) / 9007199254740992.0


@njit(nogil=True, cache=True)
def gather_rows(
    tokens: Tokens,
    separator: int,
    order: Order,
    source: Source,
    starts: NDArray[np.uint32],
    dead: NDArray[np.bool_],
    ranges: Ranges,
    longest: int,
    rows: NDArray[np.int64],
    seen: NDArray[np.int64],
    seed: int,
    layer: int,
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
    found = np.empty(out_tokens.shape[1], tokens.dtype)
    window = np.full(WINDOW + 1, _NO_WINDOW, np.uint32)
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
        start = _fraction(seed, length) * step if wanted < total else 0.0
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
            position = _position(order, source, window, place)
            if hidden[0] <= position < hidden[1]:
                continue
            file = _file_of(starts, position)
            if len(dead) and dead[file]:
                continue
            _copy_until_separator(tokens, separator, source, found, position, out_tokens[row])
            out_lengths[row] = length
            out_counts[row] = step
            out_sources[row] = layer
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
