"""Finds out how many tokens a server takes and writes, from what it says or refuses."""

from __future__ import annotations

import re
from typing import Any

CHARACTERS_PER_TOKEN = 3.0
"""Of code, on the safe side. What a refusal tells of a prompt's tokens counts from then on."""
FEWEST_CHARACTERS = 0.5
MARGIN = 0.9
OVERHEAD_TOKENS = 64
"""Of a chat template around a question."""
SHORTEST_WINDOW = 256
SHORTEST_ANSWER = 16
SHRINKING = 0.5
DENSER = 0.75

SERVED = (
    *("max_model_len", "loaded_context_length", "n_ctx", "num_ctx", "context_length"),
    *(
        "context_window",
        "max_context_length",
        "max_input_length",
        "max_seq_len",
        "max_total_tokens",
    ),
    *("max_position_embeddings",),
)
"""What servers call the tokens that a prompt and its answer may have together. ``n_ctx_train`` is
not among them: a server may serve less."""
WRITTEN = ("max_completion_tokens", "max_output_tokens", "max_new_tokens")

_N = r"(\d[\d,_]{1,11})"
_WINDOWS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:context|sequence)[ _-]?(?:length|window|size|limit)[^\d.;]{{0,40}}{_N}",
        rf"(?:max_model_len|n_ctx|max_seq_len|num_ctx)\W{{0,5}}{_N}",
        rf"tokens`? \+ .{{0,30}}must be <=? ?{_N}",
        rf"{_N}[ -]tokens? (?:maximum )?context",
        rf"{_N} (?:maximum )?context (?:length|window|size)",
        rf"{_N} tokens? > {_N} maximum",
        rf"(?:maximum|limit)(?: number)?(?: of| is|:)* {_N} (?:input |total )?tokens",
        rf"(?:token limit|maximum tokens?|limit (?:of|is))\D{{0,20}}{_N}",
    )
]
_PROMPTS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_N} (?:tokens? )?(?:in|from|of) (?:the |your )?(?:input|messages|prompt|text)",
        rf"{_N} `?(?:input|inputs|prompt)`? tokens",
        rf"(?:prompt|input|request \()[^\d]{{0,24}}{_N} tokens",
        rf"has {_N} tokens",
    )
]
_WRITTEN = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"max_(?:completion_|new_)?tokens is \[\d+, ?{_N}\]",
        rf"max_(?:completion_|new_)?tokens\W* (?:must|should) be (?:less than|at most|"
        rf"<=)\D{{0,24}}{_N}",
        rf"at most {_N} (?:completion|output) tokens",
        rf"max_tokens: \d+ > {_N}, which is the maximum",
    )
]
_REQUESTED = re.compile(
    rf"(?:requested|request for|total of|requested tokens)\W{{0,12}}{_N}", re.IGNORECASE
)
_ABOUT_LENGTH = re.compile(
    r"context[ _-]?(?:length|window|size|limit|overflow)|exceed\w* [\w ]{0,30}(?:context|token)"
    r"|(?:prompt|input|request|message)s?\b[\w ]{0,20} too (?:long|large|many tokens)"
    r"|too many (?:input |total )?tokens|maximum (?:number of )?(?:input |total )?tokens"
    r"|token (?:limit|count)|max_(?:completion_|new_)?tokens.{0,40}(?:large|[<>]|less|range|"
    r"most|exceed)"
    r"|tokens exceed"
    r"|(?:inputs|prompt)`? tokens \+|reduce the (?:length|size|number)|longer than the (?:max|"
    r"model)",
    re.IGNORECASE | re.DOTALL,
)


def is_about_length(message: str, kind: str = "") -> bool:
    """Whether a server refuses a request since it, or the answer that it asks for, is too long."""
    return kind == "413" or _ABOUT_LENGTH.search(message) is not None


class ContextWindow:
    """The tokens that a prompt and its answer may have at a server, as far as they are known."""

    def __init__(self) -> None:
        self.tokens = 0
        """Of prompt and answer together; 0 where nothing is known."""
        self.answer_tokens = 0
        """The longest answer; 0 where nothing is known."""
        self._characters_per_token = CHARACTERS_PER_TOKEN

    def tell(self, facts: dict[str, Any]) -> None:
        """What a server says of its model."""
        self.tokens = _number(facts, SERVED) or self.tokens
        self.answer_tokens = _number(facts, WRITTEN) or self.answer_tokens

    def tokens_of(self, text: str) -> int:
        """About how many tokens a text has, rather too many. A character beyond ASCII counts as
        one token."""
        plain = len(text) if text.isascii() else sum(map(str.isascii, text))
        return int(plain / self._characters_per_token) + len(text) - plain + 1

    def characters(self, tokens: int) -> int:
        """About how many characters so many tokens have, rather too few."""
        return int(tokens * self._characters_per_token)

    def answer_tokens_left(self, prompt: str, wanted: int) -> int:
        """How many tokens of an answer fit after a prompt, at most as many as are asked for; none
        or less where the prompt itself does not fit."""
        if self.answer_tokens:
            wanted = min(wanted, self.answer_tokens)
        if self.tokens:
            wanted = min(wanted, self.tokens - self.tokens_of(prompt) - OVERHEAD_TOKENS)
        return wanted

    def learn(self, message: str, numbers: dict[str, int], prompt: str, wanted: int) -> None:
        """A server refused a prompt with an answer of so many tokens as too long: know better how
        much fits, so that less is asked for."""
        window = _number(numbers, SERVED) or _first(_WINDOWS, message)
        if not window and (written := _first(_WRITTEN, message)):
            self.answer_tokens = max(min(written, wanted - 1), SHORTEST_ANSWER)
            return
        prompt_tokens = _number(numbers, ("n_prompt_tokens", "prompt_tokens"))
        prompt_tokens = prompt_tokens or _first(_PROMPTS, message)
        total = _first([_REQUESTED], message)
        if not prompt_tokens and total > wanted:
            prompt_tokens = total - wanted
        known, before = self.tokens, self.answer_tokens_left(prompt, wanted)
        if prompt_tokens:
            self._denser(len(prompt) / prompt_tokens * MARGIN)
        if window >= SHORTEST_ANSWER:
            self.tokens = window
        else:
            # Nothing is told: what was asked for is too much.
            requested = self.tokens_of(prompt) + wanted
            self.tokens = max(int(min(known or requested, requested) * SHRINKING), SHORTEST_WINDOW)
        if known and self.tokens >= known and self.answer_tokens_left(prompt, wanted) >= before:
            # It fits by our count and not by the server's: its tokens are shorter than we thought.
            self._denser(self._characters_per_token * DENSER)

    def _denser(self, characters_per_token: float) -> None:
        least = max(characters_per_token, FEWEST_CHARACTERS)
        self._characters_per_token = min(self._characters_per_token, least)


def _number(facts: dict[str, Any], names: tuple[str, ...]) -> int:
    for name in names:
        value = facts.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 1:
            return int(value)
    return 0


def _first(patterns: list[re.Pattern[str]], text: str) -> int:
    for pattern in patterns:
        if found := pattern.search(text):
            return int(re.sub(r"[,_]", "", found.groups()[-1]))
    return 0
