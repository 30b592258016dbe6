"""What is made of the states that a forward ends with, before anybody asks for it.

A speculator begins with a product of a matrix and the states of the row that chose the last token.
Behind a forward that matrix lies in no near cache: to bring it takes 4 us. The second thread, which
has nothing to do then, makes the product while the first learns what the forward brought and looks
up the text's longest match.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel import int8, lanes, matmul
from accel.compiled_attention import Floats, Stored
from accel.int8 import Codes, Int8, multiply_int8
from accel.matmul import BLOCK, wide
from accel.memory import zeros
from accel.sources.compiled import compiled_with


class Ending(NamedTuple):
    """What the second thread goes by, and what it writes.

    matrix: [out, 2 * width], without blocks where nobody asks for the product; states: float32
    [2 * width], see ``Model.state_of``; codes: int8 [2 * width]; product: float32 [out].
    """

    matrix: Int8
    states: Floats
    codes: Codes
    product: Floats

    @classmethod
    def of(cls, matrix: Int8) -> Ending:
        """Room for the products with a matrix."""
        return cls(
            matrix,
            zeros((matrix.depth,), np.float32),
            zeros((matrix.depth,), np.int8),
            zeros((len(matrix.scales),), np.float32),
        )

    @classmethod
    def nothing(cls) -> Ending:
        """Where nobody asks."""
        return cls.of(Int8(zeros((0, 0, BLOCK), np.int32), zeros((0,), np.float32)))


class Ended(NamedTuple):
    """What the first thread finds: whether a product ``is_coming``, and where; it is there once the
    last job of the ``meeting`` is done."""

    is_coming: bool
    product: Floats
    meeting: NDArray[np.int64]


@compiled_with(matmul, borrows=True)
def note_states(states: Floats, last: Stored, middle: Stored) -> None:
    """Keep the states of a row, see ``Model.state_of``."""
    width = len(last)
    for i in range(width):
        states[i], states[width + i] = wide(last[i]), wide(middle[i])


@compiled_with(borrows=True)
def is_wanted(ending: Ending) -> bool:
    """Whether anybody asks for the product."""
    return len(ending.matrix.words) > 0


@compiled_with(int8, lanes, matmul, borrows=True)
def end_with(ending: Ending, last: Stored, middle: Stored) -> None:
    """Write the product of the states of a row, where it is wanted."""
    if is_wanted(ending):
        note_states(ending.states, last, middle)
        blocks = len(ending.matrix.words)
        multiply_int8(ending.states, ending.codes, ending.matrix, blocks, ending.product)


@compiled_with()
def nothing_ended() -> Ended:
    """Where no second thread was asked."""
    return Ended(False, np.empty(0, np.float32), np.empty(0, np.int64))


__all__ = ["Ended", "Ending", "end_with", "is_wanted", "note_states", "nothing_ended"]
