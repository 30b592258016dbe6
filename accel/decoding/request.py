"""Requests to the engine, and what comes back piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import SOURCE_NAMES, Source, TokenArray
from accel.drafting.base import Drafter, DraftRequest
from accel.errors import InvalidRequest, PromptTooLong
from accel.verification.confidence import Confidence, Logprob
from accel.verification.grammar import Grammar
from accel.verification.sampling import Sampling
from accel.verification.verify_tree import Relaxed

StoppedBy = Literal["end", "stop", "length", "cancelled"]


@dataclass(slots=True)
class GenerationRequest:
    """One text to generate. Token ids are of the engine's tokenizer."""

    prompt: TokenArray
    max_tokens: int = 256
    drafter: Drafter | None = None
    """None decodes plainly."""
    draft_request: DraftRequest | None = None
    """The drafter's input; the prompt alone when left out."""
    sampling: Sampling = field(default_factory=Sampling)
    stop_tokens: frozenset[int] = frozenset()
    """They end the text, as the model's own end tokens do, and are no part of it."""
    stop_rule: Callable[[str], int | None] | None = None
    """From the text generated so far to where it must be cut, called after every token."""
    required_prefix: bytes = b""
    """Bytes that the generation begins with; ``Generation.text`` leaves them out."""
    max_nodes: int = 64
    plan: bool = True
    """Let the engine cut draft trees to what pays; False verifies them as drafted, which is what
    rules without calibrated probabilities mean."""
    relaxed: Relaxed | None = None
    """Returns the tokens of a draft model that are accepted beside the likeliest. Lossy, for greedy
    decoding only; none by default. ``verification.entropy`` has EfficientEdit's rule."""
    grammar: Grammar | None = None
    """The grammar of the text; any text by default."""
    logprobs: int | None = None
    """The number of likeliest tokens to report beside each token's probability; None reports
    nothing."""
    confidences: bool = False
    """Say how likely each token was, given the ``required_prefix``, and the end of the text before
    it (``Chunk.confidences``)."""
    following: str = ""
    """The character that follows the text, where that is known: confidences count a text that
    would go on with it as ended, too."""
    ignore_end: bool = False
    """Go on after end tokens, for measuring run-on text."""
    cancelled: Callable[[], bool] = bool

    def check(self, max_positions: int) -> None:
        """Raise InvalidRequest if a model of ``max_positions`` cannot serve it."""
        if not len(self.prompt):
            raise InvalidRequest("the prompt has no tokens; give at least one")
        if len(self.prompt) >= max_positions:
            raise PromptTooLong(
                f"the prompt has {len(self.prompt)} tokens and this model's maximum context length "
                f"is {max_positions} tokens; shorten it"
            )
        if self.relaxed is not None and not self.sampling.plain_greedy:
            raise InvalidRequest("lossy verification is for greedy decoding; set temperature to 0")
        if self.max_tokens < 1:
            raise InvalidRequest(f"max_tokens is {self.max_tokens}; give 1 or more")


@dataclass(slots=True)
class Chunk:
    """Tokens that one forward committed, or a few, int32 [n]. The first came from ``origins``
    (int8, values of ``Source``) at ``path``, the others are the model's own. ``logprobs`` holds one
    for each token where the request asks for ``logprobs``, ``confidences`` where it asks for those,
    and one more where the text ended by itself."""

    tokens: TokenArray
    origins: NDArray[np.int8]
    path: list[int]
    logprobs: list[Logprob] = field(default_factory=list)
    confidences: list[Confidence] = field(default_factory=list)

    @property
    def sources(self) -> list[str]:
        """Return the source of each token, in words."""
        drafted = [SOURCE_NAMES[source] for source in self.origins[self.path].tolist()]
        return [*drafted, *[SOURCE_NAMES[Source.MODEL]] * (len(self.tokens) - len(drafted))]
