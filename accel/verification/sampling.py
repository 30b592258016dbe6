"""Settings for the choice of a text's tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

from accel.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings for the choice of the next token. The default is greedy. Same order as transformers
    and vLLM: biases, penalties, temperature, min-p, top-k, top-p."""

    temperature: float = 0.0
    top_k: int = 0
    """0 for all tokens."""
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    penalise_prompt: bool = True
    """True if tokens of the prompt are penalised, too. After a long prompt nearly all tokens are
    penalised alike, which ends no loop."""
    min_p: float = 0.0
    """Tokens with less than this share of the likeliest one's probability are never drawn."""
    presence_penalty: float = 0.0
    """Taken from the score of every token of the text, as OpenAI and vLLM do; below 0, added."""
    frequency_penalty: float = 0.0
    """Taken as often as the token occurs in the text."""
    last_tokens: int | None = None
    """The number of last tokens, prompt and text, to which all penalties apply (llama.cpp's
    ``repeat_last_n``); None for the ranges above."""
    logit_bias: tuple[tuple[int, float], ...] = ()
    """Tokens and what is added to their scores; minus infinity for tokens that are never chosen."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise InvalidRequest(f"temperature {self.temperature} is below 0; give 0 or more")
        if self.top_k < 0:
            raise InvalidRequest(f"top_k {self.top_k} is below 0; give 0 for all tokens")
        if not 0 < self.top_p <= 1:
            raise InvalidRequest(f"top_p {self.top_p} is outside (0, 1]; give 1 for all tokens")
        if not 0 <= self.min_p <= 1:
            raise InvalidRequest(f"min_p {self.min_p} is outside [0, 1]; give 0 for all tokens")
        if not self.repetition_penalty > 0:
            raise InvalidRequest(
                f"repetition_penalty {self.repetition_penalty} is not above 0; give 1 for none"
            )
        if not (math.isfinite(self.presence_penalty) and math.isfinite(self.frequency_penalty)):
            raise InvalidRequest("presence_penalty and frequency_penalty are numbers; give 0")
        if self.last_tokens is not None and self.last_tokens < 0:
            raise InvalidRequest(f"last_tokens {self.last_tokens} is below 0; give None for all")
        if not all(bias < math.inf for _, bias in self.logit_bias):
            raise InvalidRequest("logit_bias has a number for each token; leave it out for none")

    @property
    def greedy(self) -> bool:
        """The most probable token is taken."""
        return self.temperature == 0

    @property
    def plain_greedy(self) -> bool:
        """Greedy on the logits as they stand, independent of the history."""
        return self.greedy and not self.changes_logits

    @property
    def penalises(self) -> bool:
        """Scores depend on the tokens before."""
        return bool(self.repetition_penalty != 1 or self.presence_penalty or self.frequency_penalty)

    @property
    def changes_logits(self) -> bool:
        """Scores are not the logits as they stand."""
        return self.penalises or bool(self.logit_bias)
