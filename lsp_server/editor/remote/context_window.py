"""The tokens that a server takes and writes: what it lists, and half after a refusal."""

from __future__ import annotations

import re
from typing import Any

from lsp_server.editor.remote.answer_events import WORDS

CHARACTERS_PER_TOKEN = 3.0
"""Of code, on the safe side."""
OVERHEAD_TOKENS = 64
"""Of a chat template around a question."""
SHORTEST_WINDOW = 256

SERVED = (*WORDS["served"],)
"""What servers call the tokens that a prompt and its answer may have together. ``n_ctx_train`` is
not among them: a server may serve less."""
WRITTEN = ("max_completion_tokens", "max_output_tokens", "max_new_tokens")

_ABOUT_LENGTH = re.compile(WORDS["about length"], re.IGNORECASE | re.DOTALL)


def is_about_length(message: str, kind: str = "") -> bool:
    """Return whether a server refuses a request as too long, or its answer."""
    return kind == "413" or _ABOUT_LENGTH.search(message) is not None


class ContextWindow:
    """The tokens that a prompt and its answer may have at a server, as far as they are known."""

    def __init__(self) -> None:
        self.tokens = 0
        """Of prompt and answer together; 0 where nothing is known."""
        self.answer_tokens = 0
        """The longest answer; 0 where nothing is known."""

    def tell(self, facts: dict[str, Any]) -> None:
        """Take the limits among the ``facts`` that a server tells of its model."""
        self.tokens = _number(facts, SERVED) or self.tokens
        self.answer_tokens = _number(facts, WRITTEN) or self.answer_tokens

    def tokens_of(self, text: str) -> int:
        """Return an estimate of the tokens of ``text``, rather too high. A character beyond
        ASCII counts as one token."""
        plain = len(text) if text.isascii() else sum(map(str.isascii, text))
        return int(plain / CHARACTERS_PER_TOKEN) + len(text) - plain + 1

    def characters(self, tokens: int) -> int:
        """Return an estimate of the characters of ``tokens``, rather too low."""
        return int(tokens * CHARACTERS_PER_TOKEN)

    def answer_tokens_left(self, prompt: str, most: int) -> int:
        """Return the tokens of an answer that fit after ``prompt``, at most as many as are asked
        for; none or less where the prompt itself does not fit."""
        if self.answer_tokens:
            most = min(most, self.answer_tokens)
        if self.tokens:
            most = min(most, self.tokens - self.tokens_of(prompt) - OVERHEAD_TOKENS)
        return most

    def halve(self, prompt: str, answer_tokens: int) -> None:
        """Ask for half at most: a server refused ``prompt`` with ``answer_tokens`` as too long."""
        requested = self.tokens_of(prompt) + answer_tokens
        self.tokens = max(min(self.tokens or requested, requested) // 2, SHORTEST_WINDOW)


def _number(facts: dict[str, Any], names: tuple[str, ...]) -> int:
    for name in names:
        value = facts.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 1:
            return int(value)
    return 0
