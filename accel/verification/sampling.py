"""From logits to the next token: processors, and noise that depends on seed and place alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.errors import InvalidRequest
from accel.verification.gumbel_sampling import draw

Logits = NDArray[np.float32]

_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. The default is greedy. Same order as transformers:
    repetition penalty, temperature, top-k, top-p."""

    temperature: float = 0.0
    top_k: int = 0
    """0 for all tokens."""
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    penalise_prompt: bool = True
    """Whether the penalty is for tokens of the prompt, too, or for those of the text alone. After
    a long prompt nearly all tokens are penalised alike, which ends no loop."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise InvalidRequest(f"temperature {self.temperature} is below 0; give 0 or more")
        if self.top_k < 0:
            raise InvalidRequest(f"top_k {self.top_k} is below 0; give 0 for all tokens")
        if not 0 < self.top_p <= 1:
            raise InvalidRequest(f"top_p {self.top_p} is outside (0, 1]; give 1 for all tokens")
        if not self.repetition_penalty > 0:
            raise InvalidRequest(
                f"repetition_penalty {self.repetition_penalty} is not above 0; give 1 for none"
            )

    @property
    def greedy(self) -> bool:
        """The most probable token is taken."""
        return self.temperature == 0

    @property
    def plain_greedy(self) -> bool:
        """Greedy on the logits as they stand, independent of the history."""
        return self.greedy and self.repetition_penalty == 1


def choose(logits: Logits, sampling: Sampling, seen: TokenArray, place: int) -> int:
    """Next token after a node. ``logits`` float32 [vocabulary], -inf for excluded tokens.

    ``seen`` are the tokens of the node's own history, in any order and number; ``place`` counts
    the generated tokens before this one, so that the draw depends on seed and place and not on how
    it was computed (Gumbel-max with counter-based noise).
    """
    scores = penalised(logits, sampling.repetition_penalty, seen)
    if sampling.greedy:
        return int(scores.argmax())
    return int(
        draw(
            scores,
            sampling.temperature,
            sampling.top_k,
            sampling.top_p,
            np.uint64(sampling.seed & _MASK),
            np.uint64(place & _MASK),
        )
    )


def warm_up() -> None:
    """Compile the draw of a token, or load its compiled form."""
    choose(np.zeros(2, np.float32), Sampling(temperature=1.0, top_p=0.5), np.zeros(0, np.int32), 0)


def penalised(logits: Logits, penalty: float, seen: TokenArray) -> Logits:
    """Scores of seen tokens made less likely (CTRL, Keskar et al. 2019, as in transformers)."""
    if penalty == 1 or not len(seen):
        return logits
    scores = logits.copy()
    old = scores[seen]
    scores[seen] = np.where(old < 0, old * penalty, old / penalty)
    return scores


def nucleus(scores: Logits, sampling: Sampling) -> NDArray[np.int64]:
    """Tokens that stay after top-k and top-p, most probable first when either is set.

    Ties with the k-th score stay; top-p keeps the fewest most probable tokens whose mass reaches p.
    """
    candidates = np.flatnonzero(scores > -np.inf)
    if 0 < sampling.top_k < len(candidates):
        kth = np.partition(scores[candidates], -sampling.top_k)[-sampling.top_k]
        candidates = candidates[scores[candidates] >= kth]
    if sampling.top_p < 1:
        order = np.argsort(-scores[candidates], kind="stable")
        candidates = candidates[order]
        scaled = scores[candidates].astype(np.float64) / sampling.temperature
        mass = np.exp(scaled - scaled[0])
        before = np.cumsum(mass) - mass
        candidates = candidates[before < sampling.top_p * mass.sum()]
    return candidates
