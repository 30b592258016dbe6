"""Sorting of positions by the tokens before them, last token first.

A position ``p`` is the border before ``tokens[p]``; its context is ``tokens[p-1],
tokens[p-2], ...`` down to the separator, at most ``DEPTH`` tokens; equal contexts are ordered by
position. Separators are the greatest value of the stream's type (uint16 or uint32).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from repo_index.compiled import compiled, linked

DEPTH = 16
"""Longest context that the order distinguishes, in tokens (n_max of the FastCoder paper)."""

HEAD_STRIDE = 256
"""Positions of the order for each context that stays in memory."""

_PIECE = 100_000
"""Positions that are sorted between two pauses, at least."""

Tokens = NDArray[np.unsignedinteger]
Order = NDArray[np.uint32]
Keys = NDArray[np.uint64]


@linked(inline="always")
def precedes(tokens: Tokens, separator: int, first: int, right: int, start: int) -> bool:
    """Return True if position ``first`` comes before ``right``; ``start`` last tokens are known
    equal."""
    for back in range(start + 1, DEPTH + 1):
        a = tokens[first - back]
        b = tokens[right - back]
        if a != b:
            return a < b
        if a == separator:
            break
    return first < right


@linked(inline="always")
def _key(tokens: Tokens, separator: int, position: int, start: int, width: int) -> int:
    """``width`` context tokens after the first ``start``, packed in the order of comparison."""
    bits = np.uint64(8 * tokens.itemsize)
    key = np.uint64(0)
    ended = False
    for back in range(start + 1, start + width + 1):
        token = np.uint64(separator)
        if not ended and back <= DEPTH:
            token = np.uint64(tokens[position - back])
            ended = token == separator
        key = (key << bits) | token
    return key


@linked()
def _sort_pairs(keys: Keys, order: Order, low: int, high: int) -> None:
    """Sort ``order[low:high]`` by ``keys[low:high]``: quicksort, insertion sort for short runs."""
    stack = np.empty((64, 2), np.int64)
    stack[0, 0] = low
    stack[0, 1] = high
    depth = 1
    while depth:
        depth -= 1
        low = stack[depth, 0]
        high = stack[depth, 1]
        while high - low > 20:
            a = keys[low]
            b = keys[(low + high) >> 1]
            c = keys[high - 1]
            pivot = max(min(a, b), min(max(a, b), c))
            i = low
            j = high - 1
            while True:
                while keys[i] < pivot:
                    i += 1
                while keys[j] > pivot:
                    j -= 1
                if i >= j:
                    break
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
            middle = j + 1
            # The longer half waits on the stack, so that the stack stays within log2(n).
            if middle - low > high - middle:
                stack[depth, 0] = low
                stack[depth, 1] = middle
                low = middle
            else:
                stack[depth, 0] = middle
                stack[depth, 1] = high
                high = middle
            depth += 1
        for i in range(low + 1, high):
            key = keys[i]
            position = order[i]
            j = i
            while j > low and keys[j - 1] > key:
                keys[j] = keys[j - 1]
                order[j] = order[j - 1]
                j -= 1
            keys[j] = key
            order[j] = position


@linked()
def _insertion_sort(
    tokens: Tokens, separator: int, order: Order, low: int, high: int, start: int
) -> None:
    for i in range(low + 1, high):
        position = order[i]
        j = i
        while j > low and precedes(tokens, separator, position, order[j - 1], start):
            order[j] = order[j - 1]
            j -= 1
        order[j] = position


@linked()
def _sort_range(
    tokens: Tokens, separator: int, order: Order, keys: Keys, low: int, high: int
) -> None:
    """Sort positions that share their last token. A multikey quicksort on packed tokens."""
    width = 8 // tokens.itemsize
    stack = [(low, high, 1)]
    while stack:
        low, high, start = stack.pop()
        if high - low <= 8:
            _insertion_sort(tokens, separator, order, low, high, start)
            continue
        if start >= DEPTH:
            for i in range(low, high):
                keys[i] = order[i]
            _sort_pairs(keys, order, low, high)
            continue
        for i in range(low, high):
            keys[i] = _key(tokens, separator, order[i], start, width)
        _sort_pairs(keys, order, low, high)
        run = low
        for i in range(low + 1, high + 1):
            if i < high and keys[i] == keys[run]:
                continue
            if i - run > 1:
                # Whether the key ends in a separator says whether the contexts go on after it.
                over = (keys[run] & np.uint64(separator)) == np.uint64(separator)
                stack.append((run, i, DEPTH if over else start + width))
            run = i


@compiled()
def _bucket_positions(tokens: Tokens, separator: int, bounds: NDArray[np.int64]) -> Order:
    """Return all positions that have a context and a continuation, grouped by their last token.
    Fills ``bounds`` (int64 [vocabulary + 1]) with where the group of each token begins."""
    for p in range(1, len(tokens)):
        if tokens[p] != separator and tokens[p - 1] != separator:
            bounds[tokens[p - 1] + 1] += 1
    for token in range(1, len(bounds)):
        bounds[token] += bounds[token - 1]
    order = np.empty(bounds[-1], np.uint32)
    cursors = bounds.copy()
    for p in range(1, len(tokens)):
        if tokens[p] != separator and tokens[p - 1] != separator:
            order[cursors[tokens[p - 1]]] = p
            cursors[tokens[p - 1]] += 1
    return order


@compiled()
def sort_buckets(
    tokens: Tokens,
    separator: int,
    order: Order,
    keys: Keys,
    bounds: NDArray[np.int64],
    first: int,
    last: int,
) -> None:
    for token in range(first, last):
        if bounds[token + 1] - bounds[token] > 1:
            _sort_range(tokens, separator, order, keys, bounds[token], bounds[token + 1])


def sort_positions(
    tokens: Tokens, *, threads: int = 1, pause: Callable[[], None] = lambda: None
) -> Order:
    """Return every position of a stream, ordered by reversed context: uint32 [m], tokens that have
    one of their own file before them. tokens: uint16 or uint32 [n], a separator at both ends and
    between files. ``pause`` is called between pieces of work."""
    tokens = frozen(tokens)
    separator = separator_of(tokens)
    inside = tokens[tokens != separator]
    if not len(inside):
        return np.empty(0, np.uint32)
    bounds = np.zeros(int(inside.max()) + 2, np.int64)
    order = _bucket_positions(tokens, separator, bounds)
    keys = np.empty(len(order), np.uint64)
    slices = max(8 * threads, len(order) // _PIECE)
    cuts = np.searchsorted(bounds, np.linspace(0, len(order), slices + 1))
    cuts[0], cuts[-1] = 0, len(bounds) - 1
    if threads == 1 or len(order) < _PIECE:
        for a, b in pairwise(cuts):
            pause()
            sort_buckets(tokens, separator, order, keys, bounds, int(a), int(b))
        return order
    with ThreadPoolExecutor(threads) as pool:
        jobs = [
            pool.submit(sort_buckets, tokens, separator, order, keys, bounds, int(a), int(b))
            for a, b in pairwise(cuts)
        ]
        for job in jobs:
            job.result()
    return order


@linked()
def _first_not_before(
    tokens: Tokens, separator: int, order: Order, low: int, high: int, position: int
) -> int:
    while low < high:
        middle = (low + high) >> 1
        if precedes(tokens, separator, order[middle], position, 0):
            low = middle + 1
        else:
            high = middle
    return low


@compiled()
def merge_orders(
    tokens: Tokens,
    separator: int,
    first: Order,
    right: Order,
    out: Order,
    state: NDArray[np.int64],
    budget: int,
) -> None:
    """Merge two ordered lists of positions of one stream into ``out``, ``budget`` more of them.
    state: int64 [2], how many of ``first`` and of ``right`` are merged; zeros at first."""
    i = state[0]
    j = state[1]
    n = i + j
    stop = min(len(out), n + budget)
    gallop = len(first) > 16 * len(right)
    while n < stop:
        if gallop and i < len(first) and j < len(right):
            step = 64
            while i + step < len(first) and precedes(
                tokens, separator, first[i + step], right[j], 0
            ):
                step *= 4
            end = _first_not_before(
                tokens, separator, first, i, min(len(first), i + step + 1), right[j]
            )
            end = min(end, i + stop - n)
            while i < end:
                out[n] = first[i]
                n += 1
                i += 1
            if n < stop:
                out[n] = right[j]
                n += 1
                j += 1
        elif j >= len(right) or (
            i < len(first) and precedes(tokens, separator, first[i], right[j], 0)
        ):
            out[n] = first[i]
            n += 1
            i += 1
        else:
            out[n] = right[j]
            n += 1
            j += 1
    state[0] = i
    state[1] = j


@linked(inline="always")
def file_of(starts: NDArray[np.uint32], position: int) -> int:
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


@compiled()
def keep_living(
    order: Order,
    starts: NDArray[np.uint32],
    shifts: NDArray[np.int64],
    dead: NDArray[np.bool_],
    out: Order,
) -> int:
    """Copy the positions in living files, moved by the shift of their file; returns how many."""
    n = 0
    for i in range(len(order)):
        position = np.int64(order[i])
        file = file_of(starts, position)
        if not dead[file]:
            out[n] = position + shifts[file]
            n += 1
    return n


@compiled()
def _copy_heads(tokens: Tokens, separator: int, order: Order, stride: int, heads: Tokens) -> None:
    for row in range(len(heads)):
        position = np.int64(order[row * stride])
        ended = False
        for back in range(DEPTH):
            token = tokens[position - back - 1] if not ended else heads[row, back - 1]
            heads[row, back] = token
            ended = token == separator


def heads_of(tokens: Tokens, order: Order) -> Tokens:
    """Return the contexts of every ``HEAD_STRIDE``-th position of an order, for a search to begin
    in: tokens' type [n / HEAD_STRIDE, DEPTH], the last token first; empty for a short order."""
    rows = -(-len(order) // HEAD_STRIDE) if len(order) > 4 * HEAD_STRIDE else 0
    heads = np.empty((rows, DEPTH), tokens.dtype)
    _copy_heads(frozen(tokens), separator_of(tokens), frozen(order), HEAD_STRIDE, heads)
    return heads


def separator_of(tokens: Tokens) -> int:
    """Return the value that separates files: the greatest of the stream's type."""
    return int(np.iinfo(tokens.dtype).max)


def frozen(array: NDArray[np.generic]) -> NDArray:  # type: ignore[type-arg]
    """Return a read-only view: mapped and made arrays then share one compiled form of each
    function."""
    view = array.view()
    view.flags.writeable = False
    return view


def stream_type(vocabulary_size: int) -> type[np.unsignedinteger]:
    """uint16 where every id and the separator fit, else uint32."""
    return np.uint16 if vocabulary_size < np.iinfo(np.uint16).max else np.uint32
