"""The inputs and outputs of one compiled forward."""

from __future__ import annotations

from typing import NamedTuple

from accel.draft_tree import TokenArray
from accel.models.cpu.attention import Floats
from accel.models.cpu.request_table import RequestTable


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
