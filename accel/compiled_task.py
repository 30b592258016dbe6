"""What one compiled forward is to compute, and which of that a thread does."""

from __future__ import annotations

from typing import NamedTuple

from accel.compiled_attention import Floats
from accel.draft_tree import TokenArray
from accel.drawing import Draws


class Given(NamedTuple):
    """Rows after ``past`` committed ones, see ``rows.Rows`` for tokens, offsets and mask.

    tokens, offsets: int32 [rows]; mask: float32 [rows, rows]; first_mask: from which on rows are
    mask rows; mask_inputs: float32 [masks, width], what stands for the tokens of these.
    """

    tokens: TokenArray
    offsets: TokenArray
    mask: Floats
    past: int
    first_mask: int
    mask_inputs: Floats


class Wanted(NamedTuple):
    """What is to be found of the rows.

    logits: float32 [wanted, >= vocabulary], of the last rows, written. Where it ``walks``, these
    are the mask rows, and behind the root and nodes before them, of the tree of ``parents``, int32
    [nodes], tokens are chosen by ``draws``.
    """

    logits: Floats
    parents: TokenArray
    walks: bool
    draws: Draws


class Share(NamedTuple):
    """What a thread computes: the rows from ``first`` to before ``last``, or, ``by_columns``, half
    of the columns of all rows, where it places the keys of these."""

    by_columns: bool
    first: int
    last: int


__all__ = ["Given", "Share", "Wanted"]
