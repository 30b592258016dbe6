"""What one compiled forward is to compute."""

from __future__ import annotations

from typing import NamedTuple

from accel.draft_tree import TokenArray
from accel.models.cpu.attention import Floats


class Given(NamedTuple):
    """Rows after ``past`` committed ones, see ``rows.Rows`` for tokens, offsets and mask.

    tokens, offsets: int32 [rows]; mask: float32 [rows, rows].
    """

    tokens: TokenArray
    offsets: TokenArray
    mask: Floats
    past: int


class Wanted(NamedTuple):
    """What is to be found of the rows.

    logits: float32 [wanted, >= vocabulary], of the last rows, written. Where it ``walks``, none
    are, and the likeliest tokens are found of the last rows that a greedy walk comes to, of the
    root and the nodes of the tree of ``parents``, int32 [nodes].
    """

    logits: Floats
    parents: TokenArray
    walks: bool


__all__ = ["Given", "Wanted"]
