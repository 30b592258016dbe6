"""What a speculator is trained on: the base's own answers, its states, and what retrieval knew."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor

from accel.draft_tree import TokenArray
from accel.sources.prompt import ending_match
from accel.speculator import LENGTHS
from accel.training.frozen_base import FrozenBase
from accel.training.own_text import PromptMaker

DEPTH = 3
"""Guesses one after another that are trained."""

LENGTHS_OF_PROMPTS = (192, 320, 512, 704)
ANSWER, TAIL = 96, 160
"""Tokens of an answer, and tokens before it that count, too: text that the base did not write."""
STRAYS = 0.1
"""Share of tokens of every second batch of answers that are drawn: greedy text soon repeats itself,
and little of that is kept."""
AT_ONCE = 48
LOOPING, KEPT_OF_LOOPING = 6, 0.12
"""Behind a match of so many tokens retrieval drafts, and the text may loop; a share is kept."""


@dataclass(frozen=True)
class Examples:
    """Positions of texts one behind the other.

    tokens: int64 [n]; likeliest: int64 [n], the base's choice after each; candidates, lengths:
    int64 [n], what followed the longest match that ends there, and its tokens, 0 for none; starts:
    int64 [m], positions whose next ``DEPTH + 1`` are of the same text; states: bfloat16 [m, 2 *
    width], as ``Model.state_of`` has them, after the token of each start; is_own: bool [m], whether
    all that is of the base's answer.
    """

    states: Tensor
    tokens: Tensor
    likeliest: Tensor
    candidates: Tensor
    lengths: Tensor
    starts: Tensor
    is_own: Tensor

    def batch(self, numbers: Tensor) -> Batch:
        """Of starts by their ``numbers``, all int64 but the states: of each guess its inputs and
        its answer."""
        places = self.starts[numbers, None] + torch.arange(1, DEPTH + 1)
        return Batch(
            self.states[numbers].float(),
            self.tokens[places],
            self.candidates[places],
            self.lengths[places],
            self.likeliest[places],
        )


class Batch(NamedTuple):
    """states: float32 [b, 2 * width]; the others int64 [b, DEPTH]."""

    states: Tensor
    tokens: Tensor
    candidates: Tensor
    lengths: Tensor
    answers: Tensor


@njit(cache=True)
def matches_of(tokens: TokenArray, newest: TokenArray) -> tuple[TokenArray, TokenArray]:
    """For every token of a text, what followed the longest match that ends there, and its length.
    newest: int32 [vocabulary], -1 everywhere, as it is left."""
    count = len(tokens)
    previous = np.empty(count, np.int32)
    candidates, lengths = np.zeros(count, np.int32), np.zeros(count, np.int32)
    for place in range(count):
        previous[place] = newest[tokens[place]]
        newest[tokens[place]] = place
        length, behind = ending_match(tokens, previous, place + 1)
        if length > 0:
            candidates[place], lengths[place] = tokens[behind], min(length, LENGTHS - 1)
    for token in tokens:
        newest[token] = -1
    return candidates, lengths


def read_examples(
    base: FrozenBase,
    maker: PromptMaker,
    count: int,
    ends: frozenset[int],
    rng: random.Random,
    report: Callable[[float], None],
    *,
    most_strays: float = 0.0,
    answer: int = ANSWER,
) -> Examples:
    """The base's answers, of ``answer`` tokens, to ``count`` prompts, up to one of the tokens that
    end them: greedy, every second batch with ``most_strays``, see ``FrozenBase.read``."""
    parts: list[tuple[Tensor, ...]] = []
    newest = np.full(len(base.embedding), -1, np.int32)
    generator = torch.Generator().manual_seed(rng.getrandbits(62))
    done = position = 0
    strays = 0.0
    while done < count:
        length = rng.choice(LENGTHS_OF_PROMPTS)
        text = base.read(
            maker.draw(min(AT_ONCE, count - done), length, rng),
            answer,
            chosen_from=length - TAIL,
            strays=strays,
            generator=generator,
        )
        strays = most_strays - strays
        for row, tokens in enumerate(text.tokens):
            written = tokens[length:].tolist()
            stop = next((i + 1 for i, token in enumerate(written) if token in ends), answer)
            first, last = max(length - TAIL, 0), length + stop
            found = matches_of(tokens.numpy().astype(np.int32), newest)
            matched = [torch.from_numpy(each[first:last]).long() for each in found]
            starts = torch.arange(last - first - DEPTH - 1)
            drawn = torch.tensor([rng.random() < KEPT_OF_LOOPING for _ in starts])
            kept = starts[(matched[1][starts + 1] < LOOPING) | drawn]
            parts.append(
                (
                    torch.cat([text.states[row, first:last], text.middle[row, first:last]], 1)[
                        kept
                    ].bfloat16(),
                    tokens[first:last],
                    text.likeliest[row, first:last],
                    *matched,
                    kept + position,
                    kept >= length - first - 1,
                )
            )
            position += last - first
        done += len(text.tokens)
        report(done / count)
    return Examples(*(torch.cat(column) for column in zip(*parts, strict=True)))
