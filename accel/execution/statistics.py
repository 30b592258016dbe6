"""Costs of one request and the sources of its tokens."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import SOURCE_NAMES, DraftTree


@dataclass(slots=True)
class Statistics:
    """Counters of one request. All times in seconds."""

    tokens: int = 0
    forwards: int = 0
    nodes: int = 0
    draft_forwards: int = 0
    """Forwards of the model itself that drafted, as SDSAT's first step does."""
    prompt_tokens: int = 0
    prompt_tokens_reused: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    draft_s: list[float] = field(default_factory=list)
    learn_s: float = 0.0
    """Time in which the drafter took note of what was accepted."""
    verify_s: list[float] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    """Drafted tokens accepted in each forward."""
    _counted: Counter[str] = field(default_factory=Counter, repr=False, compare=False)
    _uncounted: list[tuple[NDArray[np.int8], list[int] | slice, int]] = field(
        default_factory=list, repr=False, compare=False
    )
    """Sources of a tree's nodes, the nodes that became text, and how many tokens more."""

    def record(self, tree: DraftTree, path: list[int], token_count: int) -> None:
        """Count one forward that committed ``token_count`` tokens, the first of them drafted."""
        self.forwards += 1
        self.nodes += len(tree)
        self.tokens += token_count
        drafted = min(len(path), token_count)
        self.accepted.append(drafted)
        self._uncounted.append((tree.sources, path[:drafted], token_count - drafted))

    @property
    def sources(self) -> Counter[str]:
        """Tokens by source name; ``model`` are the model's own."""
        # Counting takes time between two forwards, and nobody asks before the end.
        for sources, path, own in self._uncounted:
            self._counted.update(SOURCE_NAMES[source] for source in sources[path].tolist())
            self._counted["model"] += own
        self._uncounted.clear()
        return self._counted

    @property
    def tokens_per_forward(self) -> float:
        """Committed tokens over forwards of decoding; prefill is not counted."""
        forwards = self.forwards + self.draft_forwards
        return self.tokens / forwards if forwards else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Committed tokens over the time of decoding alone."""
        return self.tokens / self.decode_s if self.decode_s else 0.0
