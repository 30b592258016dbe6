"""Accepted over predicted tokens of one request, by which drafts are made or left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, TokenArray
from accel.models.costs.step_overheads import AROUND_DRAFTS, USUAL_DRAFT_S
from accel.native.numba_cache import compiled

# Measure with `python -m tests.benchmarks completion --cases random --target model`.
_DECAY = 0.97
_PRIOR = 3.0
_NEW_WEIGHT = 0.05
"""Of what was just saved, in the running mean."""
_MOST_REFUSED = 6
"""Pauses double up to 32 forwards, so that drafts in vain cost a hundredth of the time."""


class AcceptanceRate:
    """Accepted over predicted tokens of one request, and what drafting costs it."""

    def __init__(self) -> None:
        self._accepted = _PRIOR
        self._predicted = _PRIOR
        self.draft_s = USUAL_DRAFT_S
        """What a draft takes, on a running mean."""
        self._saved_s = 0.0
        self._refused = 0
        self._waiting = 0

    @property
    def scale(self) -> float:
        """Accepted over predicted tokens, near 1 while little is known."""
        return min(max(self._accepted / self._predicted, 0.02), 1.5)

    def wants_draft(self, plain_s: float) -> bool:
        """Return whether the next draft is likely to save time beside a plain step of ``plain_s``
        seconds.

        After drafts were refused again and again, none is made for some forwards, unless they cost
        next to nothing.
        """
        if self._waiting > 0 and self.draft_s > 0.02 * plain_s:
            self._waiting -= 1
            return False
        return True

    def note_draft(self, seconds: float, *, is_used: bool, gain_s: float) -> None:
        """A draft was made in ``seconds``, and some of it is going to be verified or none.

        ``gain_s`` is the time that it is expected to save: while drafts save less than they cost,
        on a running mean, they count as refused.
        """
        # One slow draft, after which none is made, would never be corrected.
        self.draft_s += 0.2 * (min(seconds, 2 * self.draft_s) - self.draft_s)
        if not is_used:
            # Nothing is learnt while nothing is verified, so what was learnt fades.
            self._fade()
        saved_s = gain_s - AROUND_DRAFTS * seconds
        self._saved_s += _NEW_WEIGHT * (saved_s - self._saved_s)
        pays = self._saved_s > 0
        self._refused = 0 if pays else min(self._refused + 1, _MOST_REFUSED)
        self._waiting = 0 if pays else (1 << self._refused) // 2

    def learn(self, predicted: float, accepted: int, token_s: float) -> None:
        """``predicted`` is the sum of the probabilities that were verified; ``token_s``: what an
        accepted token saves."""
        missed = accepted - self.scale * predicted
        self._saved_s += _NEW_WEIGHT * missed * token_s
        self._fade()
        self._accepted += accepted
        self._predicted += predicted

    def _fade(self) -> None:
        self._accepted = _PRIOR + _DECAY * (self._accepted - _PRIOR)
        self._predicted = _PRIOR + _DECAY * (self._predicted - _PRIOR)


def expected_hits(tree: DraftTree, path: list[int]) -> float:
    """Return the expected number of nodes with the model's next token as a child, among those that
    a verification along ``path`` visited, with the root.

    To be compared with ``len(path)``. The sum of all probabilities would count one wrong guess at
    the start of a long branch as many.
    """
    if not len(tree):
        return 0.0
    parents = np.asarray(tree.parents, np.int32)
    probabilities = np.asarray(tree.probabilities, np.float32)
    return float(_expected_hits(parents, probabilities, np.array(path, np.int32)))


@compiled()
def _expected_hits(
    parents: TokenArray, probabilities: NDArray[np.float32], path: TokenArray
) -> float:
    below = np.zeros(len(parents) + 1)
    for node in range(len(parents)):
        below[parents[node] + 1] += probabilities[node]
    hits = min(below[0], 1.0)
    for node in path:
        hits += min(below[node + 1] / max(probabilities[node], 1e-9), 1.0)
    return hits
