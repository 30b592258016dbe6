"""The choice of continuations among all occurrences of what was matched, compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from repo_index.compiled import linked
from repo_index.matching import NO_WINDOW, WINDOW, Ranges, Source, position_at, read_tokens
from repo_index.ordering import DEPTH, Order, Tokens, file_of

_OPAQUE_POINTERS = llvm.llvm_version_info[0] >= 16


class Stream(NamedTuple):
    """A segment as it is read.

    tokens, separator, order: see ``Segment``; source: see ``matching.Source``; starts: uint32,
    where files begin, and dead: bool, which of them are no more, empty where none is; layer: of the
    snapshot; first_file: number of the first file.
    """

    tokens: Tokens
    separator: int
    order: Order
    source: Source
    starts: NDArray[np.uint32]
    dead: NDArray[np.bool_]
    layer: int
    first_file: int


class Share(NamedTuple):
    """The occurrences that are given: rows of each match length, see ``plan_rows``; seen: int64
    [DEPTH + 2], occurrences in segments before; seed: from where on they are counted."""

    rows: NDArray[np.int64]
    seen: NDArray[np.int64]
    seed: int


class RowBuffers(NamedTuple):
    """Arrays that rows are written to, see ``Snapshot.lookup``: the first ``depth`` columns of
    tokens, int32 [rows, width]; lengths, counts, sources and files, the last empty where nobody
    asks."""

    tokens: NDArray[np.int32]
    lengths: NDArray[np.int32]
    counts: NDArray[np.float32]
    sources: NDArray[np.int8]
    files: NDArray[np.int32]
    depth: int


@linked(inline="always")
def _copy_until_separator(
    stream: Stream, buffer: Tokens, position: int, out: NDArray[np.int32]
) -> None:
    """Return what follows ``position`` in its file, or -1. buffer: as long as ``out``."""
    copied = 0
    if stream.source[2] < 0:
        while copied < len(out) and stream.tokens[position + copied] != stream.separator:
            out[copied] = stream.tokens[position + copied]
            copied += 1
    else:
        read_tokens(stream.source, position, buffer)
        while copied < len(out) and buffer[copied] != stream.separator:
            out[copied] = buffer[copied]
            copied += 1
    out[copied:] = -1


@linked(forceinline=True)
def plan_rows(
    ranges: Ranges, longest: NDArray[np.int64], limit: int, floor: int, rows: NDArray[np.int64]
) -> int:
    """Share ``limit`` rows among match lengths, the longest first, ``floor`` rows to every shorter
    one; returns how many are planned. ranges: int64 [segments, DEPTH + 2, 2]; longest: int64
    [segments]; rows: int64 [DEPTH + 2, 2], rows and occurrences of match length k."""
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
    remaining = limit
    for length in range(top, 0, -1):
        promised -= min(floor, rows[length, 1])
        rows[length, 0] = min(rows[length, 1], max(remaining - promised, min(floor, remaining)))
        remaining -= rows[length, 0]
    return limit - remaining


@linked(inline="always")
def _fraction(seed: int, length: int) -> float:
    """Return a number from 0 to 1 that looks random."""
    mixed = (np.uint64(seed) + np.uint64(length)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return np.float64(mixed >> np.uint64(11)) / 9007199254740992.0


@intrinsic
def fetch(_context: Any, address: Any) -> Any:
    """Ask for the line of memory at an address."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8), ir.IntType(32)
        pointer = builder.inttoptr(arguments[0], byte.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        name = "llvm.prefetch.p0" if _OPAQUE_POINTERS else "llvm.prefetch.p0i8"
        prefetch = cgutils.get_or_insert_function(builder.module, kind, name)
        builder.call(prefetch, [pointer, word(0), word(3), word(1)])

    return types.void(address), generate


@linked(forceinline=True)
def _choose(
    stream: Stream,
    ranges: Ranges,
    longest: int,
    share: Share,
    first_row: int,
    positions: NDArray[np.int64],
    rows: RowBuffers,
) -> int:
    """Write the positions of the occurrences that are given, and what they stand for; returns how
    many. See ``gather_rows``."""
    tokens, order, source = stream.tokens, stream.order, stream.source
    window = np.full(WINDOW + 1, NO_WINDOW, np.uint32)
    chosen = 0
    for length in range(longest, 0, -1):
        low = ranges[length, 0]
        high = ranges[length, 1]
        inner_low = high
        inner_high = high
        if length < longest:
            inner_low = ranges[length + 1, 0]
            inner_high = ranges[length + 1, 1]
        count = inner_low - low + high - inner_high
        row_count, total = share.rows[length, 0], share.rows[length, 1]
        before = share.seen[length]
        share.seen[length] += count
        if row_count == 0 or count == 0:
            continue
        step = total / row_count
        start = _fraction(share.seed, length) * step if row_count < total else 0.0
        sample = np.int64(max(0.0, np.ceil((before - start) / step)))
        while sample > 0 and np.int64(start + (sample - 1) * step) >= before:
            sample -= 1
        while sample < row_count:
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
            position = position_at(order, source, window, place)
            if source[2] < 0:
                fetch(tokens.ctypes.data + position * tokens.itemsize)
            positions[chosen] = position
            rows.lengths[first_row + chosen] = length
            rows.counts[first_row + chosen] = step
            chosen += 1
    return chosen


@linked(forceinline=True)
def gather_rows(
    stream: Stream,
    ranges: Ranges,
    longest: int,
    share: Share,
    hidden: NDArray[np.int64],
    first_row: int,
    rows: RowBuffers,
) -> int:
    """Write the rows of one segment from ``first_row`` on; returns the row after the last. ranges:
    int64 [DEPTH + 2, 2], of the segment; hidden: int64 [2], positions that are not given. Every
    ``count / rows``-th occurrence of a match length in a living file is taken, from a start that
    depends on the seed: an unbiased sample."""
    read = np.empty(rows.depth, stream.tokens.dtype)
    count = np.int64(0)
    for length in range(1, longest + 1):
        count += share.rows[length, 0]
    positions = np.empty(count, np.int64)
    chosen = _choose(stream, ranges, longest, share, first_row, positions, rows)
    # Rows lie far apart: all of them are on their way from memory before the first is read.
    row = first_row
    for i in range(chosen):
        position = positions[i]
        if hidden[0] <= position < hidden[1]:
            continue
        if len(stream.dead) or len(rows.files):
            file = file_of(stream.starts, position)
            if len(stream.dead) and stream.dead[file]:
                continue
            if len(rows.files):
                rows.files[row] = stream.first_file + file
        line = rows.tokens[row]
        _copy_until_separator(stream, read, position, line[: rows.depth])
        if rows.depth < len(line):
            line[rows.depth] = -1
        rows.lengths[row] = rows.lengths[first_row + i]
        rows.counts[row] = rows.counts[first_row + i]
        rows.sources[row] = stream.layer
        row += 1
    return row


@linked(forceinline=True)
def seed_of(context: NDArray[np.int32]) -> int:
    """Return a number that depends on the last ``DEPTH`` tokens, so that equal lookups answer
    alike."""
    seed = np.uint64(0xCBF29CE484222325)
    for i in range(max(0, len(context) - DEPTH), len(context)):
        seed = (seed ^ np.uint64(context[i] & 0xFFFFFFFF)) * np.uint64(0x100000001B3)
    return np.int64(seed >> np.uint64(1))
