"""Spelling of tokens: the shape of each, and the tokens that spell the same word (``mask``, ``
mask``, ``(mask``)."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray

SHAPES = 15
"""Number of shapes; 0 stands for tokens of which nothing is known."""

_TABLE = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
KEYWORDS = frozenset(_TABLE["keywords"])
"""Of the common languages: what is there is grammar, not a name."""

_SHAPE_RULES = [(shape, re.compile(rule, re.DOTALL)) for shape, rule in _TABLE["shapes"]]
_WORD = re.compile(r"[^\w]*(?P<word>[^\W\d]\w+)")


class TokenShapes(NamedTuple):
    """Shapes and words of a vocabulary, in arrays that compiled code reads.

    shapes: int8 [vocabulary]; words: int32 [vocabulary], an id of the word that a token spells,
    -1 where it spells none; the tokens of word ``w`` are
    ``variants[variant_starts[w] : variant_starts[w + 1]]``, int32 both.
    """

    shapes: NDArray[np.int8]
    words: TokenArray
    variant_starts: TokenArray
    variants: TokenArray

    @classmethod
    def unknown(cls) -> TokenShapes:
        """Of a vocabulary whose spelling is not known."""
        return cls(
            np.zeros(1, np.int8),
            np.full(1, -1, np.int32),
            np.zeros(1, np.int32),
            np.empty(0, np.int32),
        )

    @classmethod
    def of(cls, spelling: Sequence[bytes]) -> TokenShapes:
        """Of a vocabulary given by the bytes of every token."""
        shapes = np.zeros(len(spelling), np.int8)
        spelt = defaultdict(list)
        for token, raw in enumerate(spelling):
            text = raw.decode("utf-8", errors="replace")
            shapes[token] = shape_of(text)
            word = _WORD.fullmatch(text)
            if word:
                spelt[word["word"]].append(token)
        words = np.full(len(spelling), -1, np.int32)
        several = [tokens for tokens in spelt.values() if len(tokens) > 1]
        for word_id, tokens in enumerate(several):
            words[tokens] = word_id
        starts = np.cumsum([0, *map(len, several)]).astype(np.int32)
        variants = np.array([token for tokens in several for token in tokens], np.int32)
        return cls(shapes, words, starts, variants)


def shape_of(text: str) -> int:
    """Shape of a token by its text, below ``SHAPES``."""
    if not text:
        return 0
    if text.strip(" ") in KEYWORDS:
        return 3
    return next((shape for shape, rule in _SHAPE_RULES if rule.fullmatch(text)), 14)
