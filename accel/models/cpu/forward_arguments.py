"""What one compiled forward reads and writes."""

from __future__ import annotations

from typing import NamedTuple

from accel.draft_tree import TokenArray
from accel.models.cpu.attention import Floats


class ForwardInput(NamedTuple):
    """Rows after ``past`` committed ones, see ``accel.batch.ForwardBatch``.

    tokens, offsets: int32 [rows]; mask: float32 [rows, rows].
    """

    tokens: TokenArray
    offsets: TokenArray
    mask: Floats
    past: int


class ForwardOutput(NamedTuple):
    """What a forward computes of its last rows.

    logits: float32 [rows, >= vocabulary], written. A forward that ``verifies`` writes no logits: it
    finds the argmax of the rows that the greedy verification of the tree ``parents``, int32
    [nodes], visits.
    """

    logits: Floats
    parents: TokenArray
    verifies: bool


__all__ = ["ForwardInput", "ForwardOutput"]
