"""Prompts of one length from a corpus."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import torch

from accel.draft_tree import TokenArray
from accel.text.prompts import around_hole, back_off
from accel.text.special_tokens import FimFormat, fim_format_of
from accel.text.tokenizer import Tokenizer
from tests.benchmarks.training.errors import TrainingError
from tests.benchmarks.training.samples.holes import HoleMaker

HOLE_SHARE = 0.5
"""Prompts with text after the cursor."""
CHARACTERS = 8
"""Characters of code that surely hold a token, and half of that the least."""
ATTEMPTS = 200


class PromptMaker:
    """Draws prompts from source texts. The same seed draws the same."""

    def __init__(
        self, texts: Sequence[str], tokenizer: Tokenizer, hole_share: float = HOLE_SHARE
    ) -> None:
        """Raises TrainingError without texts."""
        if not texts:
            raise TrainingError("there is no text to prompt with; give a corpus")
        self._texts = texts
        self._tokenizer = tokenizer
        self._hole_share = hole_share
        self._format = fim_format_of(tokenizer)

    def draw(self, count: int, length: int, rng: random.Random) -> torch.Tensor:
        """int64 [count, length]. Raises TrainingError when no text is long enough."""
        found: list[TokenArray] = []
        for _ in range(ATTEMPTS * count):
            prompt = self._one(length, rng)
            if prompt is not None:
                found.append(prompt)
            if len(found) == count:
                return torch.from_numpy(np.stack(found).astype(np.int64))
        raise TrainingError(f"the corpus has too little text for prompts of {length} tokens")

    def _one(self, length: int, rng: random.Random) -> TokenArray | None:
        text = rng.choice(self._texts)
        reach = CHARACTERS * length
        start = rng.randrange(max(len(text) - reach // 2, 1))
        start = text.rfind("\n", 0, start) + 1 if rng.random() < 0.8 else 0
        text = text[start : start + 2 * reach]
        if self._format is not None and rng.random() < self._hole_share:
            return self._with_hole(self._format, text, length, rng)
        tokens = self._tokenizer.encode(text)
        return tokens[:length] if len(tokens) >= length else None

    def _with_hole(
        self, fim: FimFormat, text: str, length: int, rng: random.Random
    ) -> TokenArray | None:
        hole = HoleMaker(text).draw(rng)
        if hole is None:
            return None
        cursor, end = hole
        before = self._tokenizer.encode(back_off(self._tokenizer, text[:cursor])[0])
        after = self._tokenizer.encode(text[end : end + CHARACTERS * length])
        available = length - (3 if fim.middle is not None else 2)
        wanted = max(
            min(int(available * rng.uniform(0.15, 0.5)), len(after)), available - len(before)
        )
        if wanted > len(after):
            return None
        head = before[len(before) - (available - wanted) :]
        return around_hole(fim, head, after[:wanted])
