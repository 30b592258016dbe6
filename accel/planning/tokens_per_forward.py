"""Tokens that a forward yields by its number of rows, E(T), of one kind of text."""

from __future__ import annotations

from typing import Any

HALF_LIFE = 4000
"""Tokens after which what was learnt counts half, so that a changing task is followed."""
TYPICAL_TOKENS = 80.0
"""What is typical counts as much as so many tokens of a user's own."""


class TokensPerForward:
    """At first what is typical; then what a user's own texts yielded, later ones more."""

    def __init__(self, typical: dict[int, float]) -> None:
        """typical: tokens of a forward, by its rows."""
        self._tokens = TYPICAL_TOKENS
        self._forwards = {rows: TYPICAL_TOKENS / brought for rows, brought in typical.items()}
        self.learnt = 0.0
        """Tokens of own texts that it is based on."""

    def __getitem__(self, rows: int) -> float:
        """Return the tokens of a forward of ``rows`` rows."""
        return self._tokens / self._forwards[rows]

    def learn(self, tokens: int, forwards: dict[int, float]) -> None:
        """Note a text of ``tokens`` tokens and the ``forwards`` that it took, or would have taken,
        by their rows."""
        fade = 0.5 ** (tokens / HALF_LIFE)
        self._tokens = fade * self._tokens + tokens
        self.learnt = fade * self.learnt + tokens
        for rows, count in forwards.items():
            self._forwards[rows] = fade * self._forwards[rows] + count

    def to_json(self) -> dict[str, Any]:
        """For the store."""
        forwards = {str(rows): count for rows, count in self._forwards.items()}
        return {"tokens": self._tokens, "learnt": self.learnt, "forwards": forwards}

    def restore(self, data: Any) -> None:
        """Go on from what ``to_json`` gave. What is of another form, or of other rows, is left."""
        try:
            tokens, learnt = float(data["tokens"]), float(data["learnt"])
            forwards = {int(rows): float(count) for rows, count in data["forwards"].items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            return
        is_sound = forwards.keys() == self._forwards.keys() and all(
            0 < count <= 1.001 * tokens for count in forwards.values()
        )
        if is_sound and tokens < 4 * HALF_LIFE and 0 <= learnt <= tokens:
            self._tokens, self.learnt, self._forwards = tokens, learnt, forwards
