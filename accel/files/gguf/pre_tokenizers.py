"""Patterns by which each kind of byte-level vocabulary cuts a text into the pieces that no token
crosses.

The kinds are the names of ``tokenizer.ggml.pre``; the patterns are those of the models' own
``tokenizer.json`` files, in the syntax of the tokenizers library. Each pattern cuts the pieces that
the ones before it did not cut.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """Steps of a kind of vocabulary before and around its merges."""

    patterns: tuple[str, ...]
    ignores_merges: bool = False
    """A piece that is a token becomes that token, even against the merges."""
    begins: bool = False
    """A text begins with the beginning token unless the file says otherwise."""


PRE_TOKENIZERS = {
    name: PreTokenizer(
        tuple(row["patterns"]), row.get("ignores_merges", False), row.get("begins", False)
    )
    for row in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    for name in row["names"]
}
"""By the name that a file gives."""
