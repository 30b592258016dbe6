"""What the compiled forward computes: a decoder's parts, wherever they were read from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu.attention import Shape
from accel.models.cpu.parts import Weights
from accel.models.cpu.quantised.matrix import QuantisedMatrix


@dataclass(frozen=True)
class Decoder:
    """A decoder like Llama.

    dtype: the name of its weights' format; rotations: float32 [positions, 2, depth / 2], cosine and
    sine for so many positions; matrices: those that ``weights`` has the places of;
    end_tokens: where the decoder says which.
    """

    shape: Shape
    weights: Weights
    vocabulary_size: int
    max_positions: int
    dtype: str
    rotations: Callable[[int], NDArray[np.float32]]
    matrices: tuple[QuantisedMatrix, ...] = ()
    end_tokens: frozenset[int] = frozenset()


def places_of(layers: Sequence[Sequence[QuantisedMatrix]]) -> NDArray[np.int64]:
    """``layer_matrices.Matrices`` of quantised ones, given for each layer those whose columns stand
    beside each other."""
    return np.stack([np.stack([part.place() for part in layer]) for layer in layers])


def rotation_table(
    frequencies: NDArray[np.float32], scale: float, positions: int
) -> NDArray[np.float32]:
    """``Decoder.rotations``, given radians a position for each pair of a head's numbers, and what
    cosines and sines are multiplied by."""
    angles = np.outer(np.arange(positions, dtype=np.float32), frequencies)
    table = np.stack([np.cos(angles), np.sin(angles)], 1) * np.float32(scale)
    return np.ascontiguousarray(table, np.float32)


__all__ = ["Decoder", "places_of", "rotation_table"]
