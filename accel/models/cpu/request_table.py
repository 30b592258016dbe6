"""Rows of a forward by request, and the caches of those requests.

A forward computes rows of several requests, one after the other. A table has a line for each: its
cache by addresses, so that one compiled form serves any number of caches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel.models.cpu.attention import Floats
from accel.models.cpu.matmul import BLOCK, Packed
from accel.native.numba_cache import compiled

if TYPE_CHECKING:
    from accel.models.batch import ForwardBatch
    from accel.models.cpu.cache import CompiledCache

RequestTable = NDArray[np.int64]
"""int64 [requests, 12], see ``line_of``."""

FIRST, ROWS, PAST, WANTED, VERIFIES, NUMBERS = range(6)
_MASK, _KEYS, _VALUES, _KEY_SCALES, _VALUE_SCALES, _CAPACITY = range(6, 12)


def line_of(batch: ForwardBatch, cache: CompiledCache, first: int, numbers: int) -> list[int]:
    """Return a request's line: its first row in the forward, how many it has, the tokens before
    them, the first row whose logits are asked for, whether its tree is verified, and the row of the
    logits from which on its numbers are written; then its mask and its cache."""
    first_wanted = first + batch.logits_from
    verifies = not batch.wants_numbers and batch.logits_from < len(batch)
    mask = batch.mask.__array_interface__["data"][0]
    line = first, len(batch), cache.length, first_wanted, int(verifies), numbers
    return [*line, mask, *cache.addresses, cache.capacity]


@intrinsic
def _array_at(_context: Any, address: Any, shape: Any, like: Any) -> Any:
    """Return the array of a shape at an address, of the type of one that is ``like`` it."""
    # Takes long to import, and is for compiling alone.
    from numba.np.arrayobj import populate_array

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(like)(context, builder)
        size = context.get_constant(types.intp, context.get_abi_sizeof(_item(context, like)))
        lengths = cgutils.unpack_tuple(builder, arguments[1])
        strides: list[Any] = []
        stride = size
        for length in reversed(lengths):
            strides.insert(0, stride)
            stride = builder.mul(stride, length)
        pointer = builder.inttoptr(arguments[0], array.data.type)
        populate_array(array, pointer, lengths, strides, size, meminfo=None)
        return array._getvalue()

    return like(address, shape, like), generate


def _item(context: Any, like: Any) -> Any:
    return context.get_data_type(like.dtype)


@compiled(borrows=True, forceinline=True)
def rows_wanted(requests: RequestTable, request: int) -> tuple[int, int]:
    """Return the first row whose logits are asked for, and the one after the last."""
    return requests[request, WANTED], requests[request, FIRST] + requests[request, ROWS]


@njit(nogil=True, inline="always")
def mask_of(requests: RequestTable, request: int, like: Floats) -> Floats:
    """Return its mask, float32 [rows, rows]. like: any such array."""
    rows = requests[request, ROWS]
    return _array_at(requests[request, _MASK], (rows, rows), like)


@njit(nogil=True, inline="always")
def keys_of(requests: RequestTable, request: int, like: Packed) -> Packed:
    """Return the keys of its cache, of as many layers and heads as another's, and of the same
    dtype."""
    layers, heads, _, rows, columns = like.shape
    blocks = requests[request, _CAPACITY] // BLOCK
    shape = layers, heads, blocks, rows, columns
    return _array_at(requests[request, _KEYS], shape, like)


@njit(nogil=True, inline="always")
def values_of(requests: RequestTable, request: int, like: Packed) -> Packed:
    """Return the values of its cache. like: those of a cache of one block of positions."""
    layers, heads, blocks, rows, columns = like.shape
    shape = layers, heads, blocks, requests[request, _CAPACITY] // BLOCK * rows, columns
    return _array_at(requests[request, _VALUES], shape, like)


@njit(nogil=True, inline="always")
def key_scales_of(requests: RequestTable, request: int, like: Floats) -> Floats:
    """Return the scales of its cache's keys. like: those of a cache of one block of positions."""
    layers, heads, columns = like.shape
    shape = layers, heads, requests[request, _CAPACITY] // BLOCK * columns
    return _array_at(requests[request, _KEY_SCALES], shape, like)


@njit(nogil=True, inline="always")
def value_scales_of(requests: RequestTable, request: int, like: Floats) -> Floats:
    """Return the scales of its cache's values. like: those of a cache of one block of positions."""
    layers, heads, columns = like.shape
    shape = layers, heads, requests[request, _CAPACITY] // BLOCK * columns
    return _array_at(requests[request, _VALUE_SCALES], shape, like)
