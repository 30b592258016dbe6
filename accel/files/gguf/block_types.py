"""Types of a GGUF file's tensors: blocks with a number of values in a number of bytes.

Source: the table of types in the GGUF specification (ggml's docs/gguf.md, ``ggml_type``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

SMALL_BLOCK = 32
"""Values of the smallest quantised blocks: our own forward takes sizes that are made of them."""


@dataclass(frozen=True, slots=True)
class GgmlType:
    """One way to store values. A row is a whole number of blocks."""

    name: str
    values: int
    """Values of a block."""
    nbytes: int
    """Bytes of a block."""


BLOCK_TYPES = {
    number: GgmlType(*fields)
    for number, *fields in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
}
"""By the number that a file has for it."""
