"""The inputs and outputs of a forward: its rows by request, and the caches of those requests.

A forward computes rows of several requests, one after the other. A table has a line for each: its
cache by addresses, so that one compiled form serves any number of caches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.models.cpu.attention import Floats, KVCache
from accel.models.cpu.matmul import BLOCK
from accel.native.numba_cache import compiled

if TYPE_CHECKING:
    from accel.models.batch import ForwardBatch
    from accel.models.cpu.cache import CompiledCache

RequestTable = NDArray[np.int64]
"""int64 [requests, 12], see ``line_of``."""

FIRST, ROWS, PAST, WANTED, VERIFIES, NUMBERS = range(6)
_MASK, _KEYS, _VALUES, _KEY_SCALES, _VALUE_SCALES, _CAPACITY = range(6, 12)


class ForwardInput(NamedTuple):
    """Rows of one request or several, see ``accel.models.batch.ForwardBatch``.

    tokens, offsets: int32 [rows]; requests: whose they are.
    """

    tokens: TokenArray
    offsets: TokenArray
    requests: RequestTable


class ForwardOutput(NamedTuple):
    """The output of a forward.

    logits: float32 [rows, >= vocabulary], written for requests that ask for numbers. For verified
    trees the argmax is computed of the rows that greedy verification visits; ``parents``, int32
    [rows], holds for each node of a tree the node that it follows, -1 for its root. wanted: all
    rows whose logits are asked for; most_nodes: of a tree that is verified, -1 without one.
    """

    logits: Floats
    parents: TokenArray
    wanted: int
    most_nodes: int


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
        item = context.get_data_type(like.dtype)
        size = context.get_constant(types.intp, context.get_abi_sizeof(item))
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
def kv_of(requests: RequestTable, request: int, like: KVCache) -> KVCache:
    """Return the keys and values of its cache. like: those of a cache of one block of positions, of
    as many layers and heads, and of the same dtype."""
    line, blocks = requests[request], requests[request, _CAPACITY] // BLOCK
    layers, heads, _, rows, columns = like.keys.shape
    blocks_of_head, positions = like.values.shape[2:4]
    keys, values = (
        (layers, heads, blocks, rows, columns),
        (layers, heads, blocks_of_head, blocks * positions, columns),
    )
    scales = layers, heads, blocks * like.key_scales.shape[2]
    return KVCache(
        _array_at(line[_KEYS], keys, like.keys),
        _array_at(line[_VALUES], values, like.values),
        _array_at(line[_KEY_SCALES], scales, like.key_scales),
        _array_at(line[_VALUE_SCALES], scales, like.value_scales),
    )
