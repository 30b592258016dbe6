"""Longest-suffix lookup in one ordered stream, compiled. The order of a stored segment is not
mapped, which would count as resident, but read ``WINDOW`` entries at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from operating_system.system import is_windows
from repo_index.compiled import linked
from repo_index.ordering import DEPTH, Order, Tokens, file_of

Ranges = NDArray[np.int64]
"""int64 [segments, DEPTH + 1, 2]: at index k the part of the order that matches k tokens."""

Source = NDArray[np.int64]
"""int64 [3]: where a segment is read. The descriptor of its file, in which the order and the tokens
begin so many bytes after the start; -1 in place of an offset for an array to be used as it is."""

WINDOW = 256
"""Entries of the order that are read together; a search that began in the heads needs no more."""
NO_WINDOW = 0xFFFFFFFF

READS = not is_windows()
"""Whether the system can read so; else all arrays are used as they are."""

# pread of the C library: a read that moves no file position, so that threads may share the file.
_pread: Any = (
    types.ExternalFunction(
        "pread", types.intp(types.int32, types.voidptr, types.uintp, types.int64)
    )
    if READS
    else njit(lambda file, target, size, offset: 0)
)


@linked()
def _read_window(source: Source, number: int, window: Order) -> None:
    size = 4 * WINDOW
    read = _pread(source[0], window.ctypes.data, size, source[1] + size * number)
    # A file that somebody cut short holds nothing there; the separator at 0 stands for it.
    window[max(0, read >> 2) : WINDOW] = 0
    window[WINDOW] = number


@linked(inline="always")
def position_at(order: Order, source: Source, window: Order, rank: int) -> int:
    """Return the position in an entry of the order. window: uint32 [WINDOW + 1], the entries last
    read and which they are."""
    if source[1] < 0:
        return np.int64(order[rank])
    if window[WINDOW] != rank // WINDOW:
        _read_window(source, rank // WINDOW, window)
    return np.int64(window[rank % WINDOW])


@linked()
def read_tokens(source: Source, position: int, buffer: Tokens) -> None:
    size = buffer.itemsize
    read = _pread(source[0], buffer.ctypes.data, size * len(buffer), source[2] + size * position)
    buffer[max(0, read // size) :] = 0


@linked(inline="always")
def _token(tokens: Tokens, source: Source, buffer: Tokens, position: int) -> int:
    """Return the token at a position. found: a buffer of the stream's type."""
    if source[2] < 0:
        return np.int64(tokens[position])
    read_tokens(source, position, buffer)
    return np.int64(buffer[0])


@linked(inline="always")
def _first_head(heads: Tokens, low: int, high: int, back: int, least: int) -> int:
    """Return the first head in ``low`` to ``high`` whose token ``back`` is at least ``least``."""
    while low < high:
        middle = (low + high) >> 1
        if heads[middle, back] < least:
            low = middle + 1
        else:
            high = middle
    return low


@linked(inline="always")
def _end_of_heads(heads: Tokens, low: int, high: int, back: int, token: int) -> int:
    """Return first of the heads ``low`` to ``high`` whose token ``back`` is greater than ``token``,
    by steps that double: few have that token where others are matched already."""
    step = 1
    while low + step < high and heads[low + step, back] <= token:
        low += step
        step *= 2
    return _first_head(heads, low, min(low + step, high), back, token + 1)


@linked(inline="always")
def _first_place(
    tokens: Tokens,
    order: Order,
    source: Source,
    window: Order,
    buffer: Tokens,
    low: int,
    high: int,
    length: int,
    least: int,
) -> int:
    """Return first index in ``order[low:high]`` whose token ``length`` before is ``least`` or
    greater."""
    while low < high:
        middle = (low + high) >> 1
        position = position_at(order, source, window, middle)
        if _token(tokens, source, buffer, position - length) < least:
            low = middle + 1
        else:
            high = middle
    return low


@linked(forceinline=True)
def match_ranges(
    tokens: Tokens,
    separator: int,
    order: Order,
    source: Source,
    heads: Tokens,
    stride: int,
    starts: NDArray[np.int64],
    context: NDArray[np.int32],
    longest: int,
    ranges: Ranges,
) -> int:
    """Find the parts of ``order`` that match 1, 2, ... last tokens of ``context``.

    heads: contexts of every ``stride``-th entry of the order, or none, searched first. ranges:
    int64 [DEPTH + 1, 2], written from index 1 to the length returned, at most ``longest``. known:
    int64, parts that match one token, by token: first index and the one after the last in the
    halves of one number; 0 where not searched yet. May be short, and is written.
    """
    low = 0
    high = len(order)
    matched = 0
    longest = min(longest, DEPTH, len(context))
    if longest > 0 and 0 <= context[len(context) - 1] < len(starts):
        bucket = starts[context[len(context) - 1]]
        if bucket != 0:
            low, high, matched = bucket >> 32, bucket & 0xFFFFFFFF, 1
            ranges[1, 0] = low
            ranges[1, 1] = high
    buffer = np.empty(1, tokens.dtype)
    low_window = np.full(WINDOW + 1, NO_WINDOW, np.uint32)
    high_window = np.full(WINDOW + 1, NO_WINDOW, np.uint32)
    for length in range(matched + 1, longest + 1):
        token = np.int64(context[len(context) - length])
        if low >= high or token < 0 or token >= separator:
            return length - 1
        first = (low + stride - 1) // stride
        last = max(first, min((high + stride - 1) // stride, len(heads)))
        begin = _first_head(heads, first, last, length - 1, token)
        end = _end_of_heads(heads, begin, last, length - 1, token)
        a = low if begin == first else (begin - 1) * stride + 1
        b = high if begin == last else begin * stride
        a = _first_place(tokens, order, source, low_window, buffer, a, b, length, token)
        if a >= high:
            return length - 1
        if begin < last and a == begin * stride:
            present = np.int64(heads[begin, length - 1])
        else:
            position = position_at(order, source, low_window, a)
            present = _token(tokens, source, buffer, position - length)
        if present != token:
            return length - 1
        low = a
        a = max(low, low if end == first else (end - 1) * stride + 1)
        b = high if end == last else end * stride
        position = position_at(order, source, high_window, b - 1)
        if _token(tokens, source, buffer, position - length) != token:
            b = _first_place(
                tokens, order, source, high_window, buffer, a, b - 1, length, token + 1
            )
        high = b
        ranges[length, 0] = low
        ranges[length, 1] = high
        if length == 1 and token < len(starts):
            starts[token] = low << 32 | high
    return longest


@linked(forceinline=True)
def drop_dead_rings(
    order: Order,
    source: Source,
    starts: NDArray[np.uint32],
    dead: NDArray[np.bool_],
    ranges: Ranges,
    longest: int,
    limit: int,
) -> int:
    """Return the longest match that has an occurrence in a living file. Only rings (occurrences of
    exactly one match length) of at most ``limit`` are looked through; a larger one is taken to
    live."""
    window = np.full(WINDOW + 1, NO_WINDOW, np.uint32)
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
            if not dead[file_of(starts, position_at(order, source, window, i))]:
                return length
    return 0
