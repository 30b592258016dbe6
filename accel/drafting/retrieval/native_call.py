"""Compiled code of another package, called by its address from compiled code: right after a
forward, a call through the interpreter is slow."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

ARGUMENTS = 7


@intrinsic
def call_entry(
    _context: Any,
    address: Any,
    index: Any,
    context: Any,
    length: Any,
    positions: Any,
    max_match: Any,
    limit: Any,
    depth: Any,
) -> Any:
    """Call the function at ``address``, int64 all, see ``base.DirectIndex.entry``."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word] * ARGUMENTS)
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(function, arguments[1:])

    assert len((index, context, length, positions, max_match, limit, depth)) == ARGUMENTS
    return types.int64(*[types.int64] * (ARGUMENTS + 1)), generate
