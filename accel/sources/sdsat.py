"""SDSAT's two-step-draft-then-verify (Liu et al. 2024, section 2.1), with an exact verifier.

One forward behind the text computes the next token and, on mask rows, guesses of the k after it;
the next forward verifies the guesses. A loop of two forwards brings two tokens and what was right.
"""

from __future__ import annotations

import numpy as np

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.mask_tokens import MaskTokens
from accel.rows import MaskGroups
from accel.sampling import Sampling, nucleus
from accel.sources.guesses import Floats
from accel.sources.protocol import DraftRequest

PUBLISHED_TOP_K, PUBLISHED_TOP_P = 10, 0.95


class SdsatDrafter:
    """Guesses of ``k`` mask rows: their likeliest tokens as one chain, or as a tree for sampling.

    Every row guesses without regard to the others, so the chance of a path is the product of its
    tokens' chances.
    """

    name = "sdsat"

    def __init__(
        self, mask_tokens: MaskTokens, k: int = 0, sampling: Sampling | None = None
    ) -> None:
        """``k``: mask rows, as many as were trained when 0; more take the last one's embedding.
        ``sampling``: draft a tree of what it can draw, as published for nucleus sampling."""
        self.size = k or mask_tokens.count
        self.gains, self.cost_s = np.full(self.size, 0.5), 0.0
        self._sampling = sampling
        self._guesses: Floats | None = None
        self._coming: Floats | None = None

    def begin(self, request: DraftRequest) -> None:
        """Nothing is guessed yet."""
        self._guesses = self._coming = None

    def draft(self, max_nodes: int) -> DraftTree:
        """The guesses, in the second forward of a loop; nothing in the first."""
        if self._guesses is None or max_nodes <= 0:
            return DraftTree.empty()
        if self._sampling is None or self._sampling.greedy:
            chain = self._guesses.argmax(-1)[:max_nodes]
            return DraftTree.chain(chain.astype(np.int32), Source.ADAPTIVE, 0.5)
        return tree_of_rows(self._guesses, self._sampling, max_nodes)

    def groups(self, tree: DraftTree) -> MaskGroups:
        """All rows behind the text in the first forward, none in the second."""
        if self._guesses is not None:
            return MaskGroups.none()
        return MaskGroups.alike([-1], self.size)

    def guess(self, logits: Floats, states: Floats, token: int) -> None:
        """logits float32 [k, vocabulary] of the mask rows."""
        self._coming = logits

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Go on to the other forward of the loop."""
        self._guesses, self._coming = self._coming, None


def tree_of_rows(logits: Floats, sampling: Sampling, max_nodes: int) -> DraftTree:
    """The likeliest paths through rows [depth, vocabulary] that do not depend on each other."""
    limited = Sampling(
        temperature=sampling.temperature,
        top_k=sampling.top_k or PUBLISHED_TOP_K,
        top_p=min(sampling.top_p, PUBLISHED_TOP_P),
    )
    rows = [_chances(row, limited) for row in logits]
    found: list[tuple[float, int, int]] = []
    waiting: list[tuple[float, int, int, int]] = []

    def offer(parent: int, depth: int, above: float) -> None:
        if depth < len(rows):
            tokens, chances = rows[depth]
            waiting.extend(
                (above * float(chance), parent, int(token), depth + 1)
                for token, chance in zip(tokens, chances, strict=True)
            )

    offer(-1, 0, 1.0)
    while waiting and len(found) < max_nodes:
        best = max(waiting, key=lambda candidate: candidate[0])
        waiting.remove(best)
        chance, parent, token, depth = best
        found.append((chance, parent, token))
        offer(len(found) - 1, depth, chance)
    return DraftTree(
        np.array([token for _, _, token in found], np.int32),
        np.array([parent for _, parent, _ in found], np.int32),
        np.array([chance for chance, _, _ in found], np.float32),
        np.full(len(found), Source.ADAPTIVE, np.int8),
    )


def _chances(logits: Floats, sampling: Sampling) -> tuple[TokenArray, Floats]:
    """Tokens that stay after top-k and top-p, and their chances."""
    tokens = nucleus(logits, sampling)
    scaled = logits[tokens].astype(np.float64) / sampling.temperature
    chances = np.exp(scaled - scaled.max())
    return tokens.astype(np.int32), (chances / chances.sum()).astype(np.float32)
