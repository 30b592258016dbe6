"""How far drafts of one request may be trusted, and whether the next is worth making."""

from __future__ import annotations

AROUND_DRAFTS = 1.7
"""What a draft costs in all for its own time: rows and accepted tokens are laid out and learnt."""

USUAL_DRAFT_S = 8.5e-5
"""What a draft takes, until one was timed."""

_DECAY = 0.97
_PRIOR = 3.0
_NEW_SHARE = 0.05
"""Of what was just saved, in the running mean."""
_NEW_PACE, _MOST_PACE = 0.1, 4.0
_MOST_REFUSED = 6
"""Pauses double up to 32 forwards, so that drafts in vain cost a hundredth of the time."""


class Trust:
    """How far a drafter's probabilities were right in one request, and what drafting costs."""

    def __init__(self) -> None:
        self._accepted = _PRIOR
        self._predicted = _PRIOR
        self.draft_s = USUAL_DRAFT_S
        """What a draft takes, on a running mean."""
        self.pace = 1.0
        """How long forwards take, over what the profile says."""
        self._saved_s = 0.0
        self._refused = 0
        self._waiting = 0

    @property
    def factor(self) -> float:
        """Accepted over predicted tokens, near 1 while little is known."""
        return min(max(self._accepted / self._predicted, 0.02), 1.5)

    def wants_draft(self, plain_s: float) -> bool:
        """Whether the next draft is likely to save time, where a plain step takes ``plain_s``: not
        for some forwards after drafts were refused again and again, unless they cost next to
        nothing. Of a ``protocol.Matcher`` ``choice.Choice`` knows more."""
        if self._waiting > 0 and self.draft_s > 0.02 * plain_s * self.pace:
            self._waiting -= 1
            return False
        return True

    def verified(self, seconds: float, expected_s: float, forwards: int = 1) -> None:
        """A forward, or each of several, took ``seconds`` where the profile says ``expected_s``: a
        machine is at times half as fast as when it was measured, and what drafts cost is measured
        now."""
        pace = min(max(seconds / expected_s, 1 / _MOST_PACE), _MOST_PACE)
        self.pace += (1 - (1 - _NEW_PACE) ** forwards) * (pace - self.pace)

    def drafted(self, seconds: float, taken: bool, gain_s: float | None = None) -> None:
        """A draft was made in ``seconds``, and some of it is going to be verified or none.

        ``gain_s`` is the time that it is expected to save: while drafts save less than they cost,
        on a running mean, they count as refused.
        """
        # One slow draft, after which none is made, would never be corrected.
        self.draft_s += 0.2 * (min(seconds, 2 * self.draft_s) - self.draft_s)
        if not taken:
            # Nothing is learnt while nothing is verified, so what was learnt fades.
            self._fade()
        pays = taken
        if gain_s is not None:
            saved_s = gain_s * self.pace - AROUND_DRAFTS * seconds
            self._saved_s += _NEW_SHARE * (saved_s - self._saved_s)
            pays = self._saved_s > 0
        self._refused = 0 if pays else min(self._refused + 1, _MOST_REFUSED)
        self._waiting = (1 << self._refused) // 2 if not pays else 0

    def learn(self, predicted: float, accepted: int, token_s: float = 0.0) -> None:
        """``predicted`` is the sum of the probabilities that were verified; ``token_s``: what an
        accepted token saves, where ``drafted`` was told what the draft was expected to."""
        missed = accepted - self.factor * predicted
        self._saved_s += _NEW_SHARE * missed * token_s * self.pace
        self._fade()
        self._accepted += accepted
        self._predicted += predicted

    def _fade(self) -> None:
        self._accepted = _PRIOR + _DECAY * (self._accepted - _PRIOR)
        self._predicted = _PRIOR + _DECAY * (self._predicted - _PRIOR)
