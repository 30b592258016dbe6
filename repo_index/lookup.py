"""A whole lookup as one call of compiled code: a snapshot writes down once where its arrays lie."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from repo_index import gathering, matching, ordering
from repo_index.compiled import compiled, linked
from repo_index.gathering import RowBuffers, Share, Stream, gather_rows, plan_rows, seed_of
from repo_index.matching import Source, drop_dead_rings, match_ranges
from repo_index.ordering import DEPTH, HEAD_STRIDE, Tokens

if TYPE_CHECKING:
    from repo_index.segment import Segment

Table = NDArray[np.int64]
"""int64 [parts, ROW], see ``table_row``; parts of a layer are stored together."""
ROW = 20

_NOTHING_HIDDEN = np.zeros(2, np.int64)


def table_row(
    segment: Segment, layer: int, dead: NDArray[np.bool_], first_file: int, source: Source
) -> list[int]:
    """Return addresses and lengths of the arrays of a segment; it keeps the arrays."""
    arrays: Sequence[NDArray[Any]] = (segment.tokens, segment.order, segment.heads, segment.starts)
    ranges = segment.known_parts
    assert all(array.flags.c_contiguous for array in (*arrays, dead, ranges))
    addresses = [number for each in (*arrays, dead) for number in (each.ctypes.data, len(each))]
    return [
        layer,
        first_file,
        segment.tokens.itemsize,
        segment.separator,
        *addresses,
        *source,
        HEAD_STRIDE,
        ranges.ctypes.data,
        len(ranges),
    ]


@intrinsic
def _pointer(_context: Any, address: Any) -> Any:
    """Return an address as a pointer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.voidptr(address), generate


@linked(inline="always")
def _tokens(row: Table, like: Tokens) -> Tokens:
    return carray(_pointer(row[4]), (row[5],), like.dtype)


@linked(inline="always")
def _heads(row: Table, like: Tokens) -> Tokens:
    return carray(_pointer(row[8]), (row[9], DEPTH), like.dtype)


@linked(inline="always")
def _order(row: Table) -> NDArray[np.uint32]:
    return carray(_pointer(row[6]), (row[7],), np.uint32)


@linked(inline="always")
def _starts(row: Table) -> NDArray[np.uint32]:
    return carray(_pointer(row[10]), (row[11],), np.uint32)


@linked(inline="always")
def _dead(row: Table) -> NDArray[np.bool_]:
    return carray(_pointer(row[12]), (row[13],), np.bool_)


@linked(forceinline=True)
def _match(
    row: Table,
    like: Tokens,
    context: NDArray[np.int32],
    max_match: int,
    limit: int,
    ranges: NDArray[np.int64],
) -> int:
    tokens, heads = _tokens(row, like), _heads(row, like)
    order, source, dead = _order(row), row[14:17], _dead(row)
    known = carray(_pointer(row[18]), (row[19],), np.int64)
    longest = match_ranges(
        tokens, row[3], order, source, heads, row[17], known, context, max_match, ranges
    )
    if len(dead):
        longest = drop_dead_rings(order, source, _starts(row), dead, ranges, longest, limit)
    return longest


def _callable_from_c(function: Any) -> Any:
    """Compiled for C, too, with a disk cache that also ends when what it is compiled with changes:
    numba looks only at the file of the function itself."""
    digest = hashlib.sha256()
    for module in (matching, gathering, ordering):
        assert module.__file__ is not None
        digest.update(Path(module.__file__).read_bytes())
    stamp = digest.hexdigest()
    dispatcher = compiled(no_cfunc_wrapper=False)(function)
    index = dispatcher._cache._cache_file
    index._source_stamp = (index._source_stamp, stamp)
    return dispatcher


@linked(forceinline=True)
def _stream(row: Table, like: Tokens) -> Stream:
    return Stream(
        _tokens(row, like),
        row[3],
        _order(row),
        row[14:17],
        _starts(row),
        _dead(row),
        row[0],
        row[1],
    )


@linked(forceinline=True)
def _write_rows(
    table: Table,
    hidden_layer: int,
    hidden: NDArray[np.int64],
    context: NDArray[np.int32],
    max_match: int,
    limit: int,
    rows: RowBuffers,
    like: Tokens,
) -> int:
    """Write the rows of every layer; returns how many. hidden: int64 [2], positions of the layer
    ``hidden_layer`` that are not given. like: of the type of all streams' tokens."""
    seed = seed_of(context)
    # Of a constant all that gathers rows would be compiled once more.
    row = np.int64(0)
    first = 0
    while first < len(table):
        layer = table[first, 0]
        count = 1
        while first + count < len(table) and table[first + count, 0] == layer:
            count += 1
        ranges = np.zeros((count, DEPTH + 2, 2), np.int64)
        longest = np.empty(count, np.int64)
        for i in range(count):
            longest[i] = _match(table[first + i], like, context, max_match, limit, ranges[i])
        planned = np.zeros((DEPTH + 2, 2), np.int64)
        if plan_rows(ranges, longest, limit, max(1, limit // 32), planned):
            share = Share(planned, np.zeros(DEPTH + 2, np.int64), seed)
            left_out = hidden if layer == hidden_layer else _NOTHING_HIDDEN
            for i in range(count):
                stream = _stream(table[first + i], like)
                row = gather_rows(stream, ranges[i], longest[i], share, left_out, row, rows)
        first += count
    return row


@linked(forceinline=True)
def _look_up(
    view: int,
    context: int,
    length: int,
    addresses: int,
    max_match: int,
    limit: int,
    depth: int,
    like: Tokens,
) -> int:
    facts = carray(_pointer(view), (6,), np.int64)
    table = carray(_pointer(facts[0]), (facts[1], ROW), np.int64)
    targets = carray(_pointer(addresses), (6,), np.int64)
    matched = min(length, DEPTH)
    last = carray(_pointer(context + 4 * (length - matched)), (matched,), np.int32)
    most_rows, width = targets[4], targets[5]
    layers, before = 0, -1
    for number in range(len(table)):
        layers += table[number, 0] != before
        before = table[number, 0]
    buffers = RowBuffers(
        carray(_pointer(targets[0]), (most_rows, width), np.int32),
        carray(_pointer(targets[1]), (most_rows,), np.int32),
        carray(_pointer(targets[2]), (most_rows,), np.float32),
        carray(_pointer(targets[3]), (most_rows,), np.int8),
        carray(_pointer(facts[4]), (facts[5],), np.int32),
        min(depth, width),
    )
    hidden, most = (
        carray(_pointer(facts[2]), (2,), np.int64),
        min(limit, most_rows // max(layers, 1)),
    )
    return _write_rows(table, facts[3], hidden, last, max_match, most, buffers, like)


@_callable_from_c
def look_up_narrow(
    view: int, context: int, length: int, addresses: int, max_match: int, limit: int, depth: int
) -> int:
    """Write the rows of every layer, those of a layer in no order; returns how many. view: of
    ``view_of``; context: of int32 [length]; places: of int64 [6], see ``Snapshot.lookup_into``. All
    streams are uint16."""
    like = carray(_pointer(view), (0,), np.uint16)
    return _look_up(view, context, length, addresses, max_match, limit, depth, like)


@_callable_from_c
def look_up_wide(
    view: int, context: int, length: int, addresses: int, max_match: int, limit: int, depth: int
) -> int:
    """``look_up_narrow`` in streams of uint32."""
    like = carray(_pointer(view), (0,), np.uint32)
    return _look_up(view, context, length, addresses, max_match, limit, depth, like)


def look_up_of(dtype: type[np.unsignedinteger]) -> Any:
    """Return the function that looks up in streams of a type: compiled for those alone that are
    used."""
    return look_up_narrow if dtype == np.uint16 else look_up_wide


def view_of(
    table: Table, hidden_layer: int, hidden: NDArray[np.int64], files: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return arguments of ``look_up_narrow``; it keeps the arrays. files: int32 [rows], for the
    file of every row; empty where it is not asked for."""
    return np.array(
        [
            table.ctypes.data,
            len(table),
            hidden.ctypes.data,
            hidden_layer,
            files.ctypes.data,
            len(files),
        ],
        np.int64,
    )


@cache
def entry_address(look_up: Any) -> int:
    """Return the address of what ``look_up_of`` gives, as a function of C: seven int64 and an int64
    returned."""
    signature = (types.int64,) * 7
    look_up.compile(signature)
    overload = look_up.overloads[signature]
    name = overload.fndesc.llvm_cfunc_wrapper_name
    address: int = overload.library.get_pointer_to_function(name)
    return address
