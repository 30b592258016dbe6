"""SDSAT's two-step-draft-then-verify (Liu et al. 2024, section 2.1), with an exact verifier.

The model reads adaptive tokens after the text: one forward gives the next token and, on their
rows, guesses of those after it; the next forward verifies them all. Such a loop of two forwards
gives two tokens and the guesses that were right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.adaptive import likely_paths
from accel.drafting.base import ComputingDrafter, DraftRequest
from accel.errors import UnsupportedModel
from accel.execution.forwards import Forwards
from accel.execution.runner import ModelRunner
from accel.models.batch import chain_batch
from accel.verification.choosing import choose
from accel.verification.sampling import Sampling

PUBLISHED_TOP_K, PUBLISHED_TOP_P = 10, 0.95

Floats = NDArray[np.float32]


class SdsatDrafter(ComputingDrafter):
    """Guesses of adaptive tokens: their likeliest tokens as one chain, or as a tree for sampling.

    The first forward runs on a KV cache of the drafter's own. Every row guesses without regard to
    the others, so the probability of a path is the product of its tokens' probabilities.
    """

    name = "sdsat"

    def __init__(self, runner: ModelRunner, k: int = 0, sampling: Sampling | None = None) -> None:
        """``k``: adaptive tokens, as many as were trained when 0; more repeat the last one.
        ``sampling``: how the text's tokens are chosen, None for greedy.

        Raises UnsupportedModel for a model without adaptive tokens.
        """
        trained = runner.model.adaptive_tokens
        if not trained:
            raise UnsupportedModel(
                "the model has no adaptive tokens; `python -m tests.benchmarks train adaptive` "
                "in a checkout of the source makes one"
            )
        self.k = k or len(trained)
        self._tokens = np.array([*trained, *[trained[-1]] * self.k][: self.k], np.int32)
        self._runner, self._sampling = runner, sampling or Sampling()
        self._session = runner.session()
        self._context = np.empty(0, np.int32)
        self._written = 0
        self.target_forwards = 0
        """Forwards of the model that drafted in this request."""

    def begin_steps(self, request: DraftRequest) -> Forwards[None]:
        """The context is all that the model was given; no forward is needed for it."""
        prompt = request.prompt if request.model_prompt is None else request.model_prompt
        self._context = np.asarray(prompt, np.int32)
        self._sampling = request.sampling or self._sampling
        self._written = self.target_forwards = 0
        yield from ()

    def draft_steps(self, max_nodes: int) -> Forwards[DraftTree]:
        """Return the next token, and after it the guesses of one forward."""
        count = min(self.k, self._runner.max_positions - len(self._context), max_nodes - 1)
        if count < 0 or not len(self._context):
            return DraftTree.empty()
        logits = yield from self._read(self._tokens[:count])
        following = choose(logits[0], self._sampling, self._written)
        first = DraftTree.chain(np.array([following], np.int32), Source.ADAPTIVE)
        if not count:
            return first
        if self._sampling.greedy:
            chain = logits[1:].argmax(-1).astype(np.int32)
            return _below(first, DraftTree.chain(chain, Source.ADAPTIVE, 0.5))
        return _below(first, tree_of_rows(logits[1:], self._sampling, max_nodes - 1))

    def _read(self, adaptive: TokenArray) -> Forwards[Floats]:
        """Return logits after the context and each adaptive token, float32 [1 + k, vocabulary]."""
        runner, session = self._runner, self._session
        with session.used_by(self):
            reused = runner.prepare(session, self._context)
            pending = self._context[reused:]
            if len(pending) > self.k + 1:
                yield from runner.extend_steps(session, self._context[:-1], lambda: False)
                pending = self._context[-1:]
            tokens = np.concatenate([pending, adaptive])
            batch = chain_batch(tokens, len(pending) - 1, wants_numbers=True)
            logits = yield from runner.forward_steps(batch, session)
            self.target_forwards += 1
            rows = np.stack([logits.row(row) for row in range(len(adaptive) + 1)])
            session.commit(pending, list(range(len(pending))))
            return rows

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """The context grew by ``tokens``; the cache catches up with the next draft."""
        self._context = np.concatenate([self._context, np.asarray(tokens, np.int32)])
        self._written += len(tokens)


def _below(first: DraftTree, rest: DraftTree) -> DraftTree:
    """Return a tree of one node and, below that, the other tree."""
    parents = np.concatenate([first.parents, rest.parents + np.int32(1)])
    return DraftTree(
        np.concatenate([first.tokens, rest.tokens]),
        parents,
        np.concatenate([first.probabilities, rest.probabilities]),
        np.concatenate([first.sources, rest.sources]),
    )


def tree_of_rows(logits: Floats, sampling: Sampling, max_nodes: int) -> DraftTree:
    """Return the likeliest paths through rows [depth, vocabulary] that do not depend on each
    other."""
    limited = Sampling(
        temperature=sampling.temperature,
        top_k=sampling.top_k or PUBLISHED_TOP_K,
        top_p=min(sampling.top_p, PUBLISHED_TOP_P),
    )
    paths = likely_paths([_chances(row, limited) for row in logits], max_nodes)
    return DraftTree(
        np.array([token for _, token, _ in paths], np.int32),
        np.array([parent for parent, _, _ in paths], np.int32),
        np.array([chance for _, _, chance in paths], np.float32),
        np.full(len(paths), Source.ADAPTIVE, np.int8),
    )


def _chances(logits: Floats, sampling: Sampling) -> tuple[TokenArray, Floats]:
    """Return tokens that stay after top-k and top-p, and their chances."""
    tokens = nucleus(logits, sampling)
    scaled = logits[tokens].astype(np.float64) / sampling.temperature
    chances = np.exp(scaled - scaled.max())
    return tokens.astype(np.int32), (chances / chances.sum()).astype(np.float32)


def nucleus(scores: NDArray[np.float32], sampling: Sampling) -> NDArray[np.int64]:
    """Return tokens that stay after top-k and top-p, most probable first when either is set. Ties
    with the k-th score stay; top-p keeps the fewest most probable tokens whose mass reaches p."""
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
