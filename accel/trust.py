"""How far drafts of one request may be trusted, and whether the next is worth making."""

from __future__ import annotations

from collections.abc import Callable

AROUND_DRAFTS = 1.7
"""What a draft costs in all for its own time: rows and accepted tokens are laid out and learnt."""

BY_MATCH = (0.8, 1.0, 1.4, 2.0, 2.4, 2.7, 2.9, 3.3, 3.5, 5.7)
"""Accepted tokens of a draft where the text's end stands earlier for 0, 1, .. tokens, as
``redraft train matches`` finds them: lines that the embedded model fills into installed
packages."""

WHOLE_COST = 2.5
"""What a draft has to save to be made, in its own time: as much again goes for wider rows behind
cold caches and for learning, and half as much for doubt."""

USUAL_DRAFT_S = 2.5e-4
"""What a draft takes, until one was timed."""

_DECAY = 0.97
_PRIOR = 3.0
_NEW_SHARE = 0.05
"""Of what was just saved, in the running mean."""
_NEW_PACE, _MOST_PACE = 0.1, 4.0
_MATCH_PRIOR, _MATCH_DECAY = 6.0, 0.9
_MOST_UNASKED = 7
_MOST_REFUSED = 6
"""Pauses double up to 32 forwards, so that drafts in vain cost a hundredth of the time."""


class Trust:
    """How far a drafter's probabilities were right in one request, and what drafting costs."""

    def __init__(self, *, is_cautious: bool = False) -> None:
        """``is_cautious``: every draft has to promise enough by its match, where there is one."""
        self._is_cautious = is_cautious
        self._accepted = _PRIOR
        self._predicted = _PRIOR
        self._brought = self._hoped = _MATCH_PRIOR
        self._hopes = 0.0
        self._hopeless = self._unasked = 0
        self._draft_s = USUAL_DRAFT_S
        self._saved_s = 0.0
        self._pace = 1.0
        self._refused = 0
        self._waiting = 0

    @property
    def factor(self) -> float:
        """Accepted over predicted tokens, near 1 while little is known."""
        return min(max(self._accepted / self._predicted, 0.02), 1.5)

    def wants_draft(self, plain_s: float, match: Callable[[], int] | None = None) -> bool:
        """Whether the next draft is likely to save time, where a plain step takes ``plain_s``.

        Without ``match``: not for some forwards after drafts were refused again and again, unless
        they cost next to nothing. ``match`` is that of a ``protocol.Matcher``. Until drafts of this
        request have saved more than they cost, and when they no longer do, they are made where
        such matches bring enough, as far as they brought it in this request.
        """
        self._hopes = 0.0
        if match is None:
            if self._waiting > 0 and self._draft_s > 0.02 * plain_s * self._pace:
                self._waiting -= 1
                return False
            return True
        if self._saved_s > 0 and not self._is_cautious:
            return True
        return self._hopes_for(plain_s, match)

    def _hopes_for(self, plain_s: float, match: Callable[[], int]) -> bool:
        if self._unasked > 0:
            self._unasked -= 1
            return False
        self._hopes = BY_MATCH[min(match(), len(BY_MATCH) - 1)]
        hoped_s = self._hopes * (self._brought / self._hoped) * plain_s * self._pace
        if hoped_s > WHOLE_COST * self._draft_s:
            self._hopeless = 0
            return True
        self._note_hopes(0.0, 0.0)
        # Asking takes a tenth of a small forward: less often while there is nothing to hope.
        self._hopeless += 1
        self._unasked = min(2 * self._hopeless, _MOST_UNASKED)
        return False

    def verified(self, seconds: float, expected_s: float) -> None:
        """A forward took ``seconds`` where the profile says ``expected_s``: a machine is at times
        half as fast as when it was measured, and what drafts cost is measured now."""
        pace = min(max(seconds / expected_s, 1 / _MOST_PACE), _MOST_PACE)
        self._pace += _NEW_PACE * (pace - self._pace)

    def drafted(self, seconds: float, taken: bool, gain_s: float | None = None) -> None:
        """A draft was made in ``seconds``, and some of it is going to be verified or none.

        ``gain_s`` is the time that it is expected to save: while drafts save less than they cost,
        on a running mean, they count as refused.
        """
        # One slow draft, after which none is made, would never be corrected.
        self._draft_s += 0.2 * (min(seconds, 2 * self._draft_s) - self._draft_s)
        if not taken:
            # Nothing is learnt while nothing is verified, so what was learnt fades.
            self._fade()
            self._note_hopes(self._hopes, 0.0)
        pays = taken
        if gain_s is not None:
            saved_s = gain_s * self._pace - AROUND_DRAFTS * seconds
            self._saved_s += _NEW_SHARE * (saved_s - self._saved_s)
            pays = self._saved_s > 0
        self._refused = 0 if pays else min(self._refused + 1, _MOST_REFUSED)
        self._waiting = (1 << self._refused) // 2 if not pays else 0

    def learn(self, predicted: float, accepted: int, token_s: float = 0.0) -> None:
        """``predicted`` is the sum of the probabilities that were verified; ``token_s``: what an
        accepted token saves, where ``drafted`` was told what the draft was expected to."""
        missed = accepted - self.factor * predicted
        self._saved_s += _NEW_SHARE * missed * token_s * self._pace
        self._fade()
        self._accepted += accepted
        self._predicted += predicted
        self._note_hopes(self._hopes, min(accepted, 3 * self._hopes))

    def _note_hopes(self, hoped: float, brought: float) -> None:
        """What was hoped for by the match alone, and what of it came."""
        self._hoped = _MATCH_PRIOR + _MATCH_DECAY * (self._hoped - _MATCH_PRIOR) + hoped
        self._brought = _MATCH_PRIOR + _MATCH_DECAY * (self._brought - _MATCH_PRIOR) + brought

    def _fade(self) -> None:
        self._accepted = _PRIOR + _DECAY * (self._accepted - _PRIOR)
        self._predicted = _PRIOR + _DECAY * (self._predicted - _PRIOR)
