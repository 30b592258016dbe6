"""The longest prompt of a completion: as long as the machine can compute in the time that a user
allows for the first suggestion of a file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

STEP = 64
"""The length is a multiple of this."""
FEWEST_TOKENS = 256
"""A shorter prompt says too little, however slow the machine is."""
MOST_TOKENS = 16_384
"""The windows that editors send hold no more."""


@dataclass(frozen=True, slots=True)
class PromptLength:
    """Seconds that a model takes for the first 64, 128, … tokens of a prompt, as it was measured.
    ``seconds`` has an entry for each length that the model takes."""

    seconds: Sequence[float]

    @classmethod
    def measured(
        cls, seconds_of: Callable[[int, int], float], chunk: int, most: int
    ) -> PromptLength:
        """Return the lengths by measured costs. ``seconds_of``: seconds of a forward of some rows
        after some tokens; ``chunk``: rows of a prompt that are computed at once; ``most``: tokens
        that the model takes."""
        steps = range(0, min(most, MOST_TOKENS) - STEP + 1, STEP)
        share = STEP / chunk
        return cls(tuple(accumulate(share * seconds_of(chunk, length) for length in steps)))

    def tokens(self, seconds: float) -> int:
        """Return the longest prompt that takes at most ``seconds``, and at least
        :data:`FEWEST_TOKENS` if the model takes that many."""
        least = min(FEWEST_TOKENS, len(self.seconds) * STEP)
        return max(bisect_right(self.seconds, seconds) * STEP, least)

    def seconds_of(self, tokens: int) -> float:
        """Return the seconds of a prompt of ``tokens`` tokens, interpolated between the lengths of
        ``seconds`` and beyond them; 0 without measurements."""
        if not self.seconds:
            return 0.0
        step = min(max(tokens // STEP, 1), len(self.seconds))
        return self.seconds[step - 1] * tokens / (step * STEP)
