"""An opened model with what decoding needs beside it."""

from __future__ import annotations

from dataclasses import dataclass

from accel.models.base import Model
from accel.models.costs.forward_costs import ForwardCosts
from accel.text.tokenizer import Tokenizer


@dataclass(slots=True)
class Backend:
    """A model ready for decoding, its tokenizer and what its forwards cost."""

    model: Model
    tokenizer: Tokenizer
    costs: ForwardCosts
    threads: int
    execution_path: str
    """Name of the forward: compiled, tree, chain, plain or llama.cpp."""
