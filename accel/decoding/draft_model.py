"""A second, smaller language model of the same tokenizer as a drafter (speculative decoding)."""

from __future__ import annotations

import numpy as np

from accel.decoding.engine import Engine
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import ComputingDrafter, DraftRequest
from accel.errors import UnsupportedModel
from accel.execution.forwards import Forwards
from accel.models.batch import chain_batch

GAMMA = 7


class DraftModelDrafter(ComputingDrafter):
    """Greedy chains of at most ``gamma`` tokens of a small model with a KV cache of its own.

    The model's own confidence is given as the probability of every node, so a planner may cut; a
    chain ends after a token whose confidence is below ``least_confidence``.
    """

    name = "standard-sd"

    def __init__(
        self,
        engine: Engine,
        target_tokenizer: str,
        gamma: int = GAMMA,
        least_confidence: float = 0.0,
    ) -> None:
        """``target_tokenizer``: ``Tokenizer.sha256`` of the target model. Raises UnsupportedModel
        when the two models do not share their tokenizer."""
        if engine.tokenizer.sha256 != target_tokenizer:
            raise UnsupportedModel(
                f"the draft model {engine.name} has another tokenizer than the target; "
                "give a draft model of the same family"
            )
        self._engine = engine
        self._gamma = gamma
        self._least_confidence = least_confidence
        self._session = engine.session()
        self._context = np.empty(0, np.int32)

    def begin_steps(self, request: DraftRequest) -> Forwards[None]:
        """The context is the prompt; the cache is trimmed to what both have in common, and the
        rest is computed now, so that drafting begins with the first token."""
        prompt = request.prompt if request.model_prompt is None else request.model_prompt
        self._context = np.asarray(prompt, np.int32)
        if 1 < len(self._context) < self._engine.max_positions:
            yield from self._engine.prefill_steps(self._context, self._session)

    def draft_steps(self, max_nodes: int) -> Forwards[DraftTree]:
        """One chain, ended early where the model itself would end the text."""
        room = self._engine.max_positions - len(self._context) - 1
        count = min(max_nodes, self._gamma, room)
        if count <= 0 or not len(self._context):
            return DraftTree.empty()
        with self._session.used_by(self):
            tokens, chances = yield from self._chain(count)
        return DraftTree(
            np.array(tokens, np.int32),
            np.arange(-1, len(tokens) - 1, dtype=np.int32),
            np.array(chances, np.float32),
            np.full(len(tokens), Source.DRAFT_MODEL, np.int8),
        )

    def _chain(self, count: int) -> Forwards[tuple[list[int], list[float]]]:
        """Return the likeliest tokens after the context, and how likely the text is up to each."""
        reused = self._engine.prepare(self._session, self._context)
        if len(self._context) - reused > 1:
            yield from self._engine.extend_steps(self._session, self._context[:-1], lambda: False)
        pending = self._context[-1:]
        tokens: list[int] = []
        chances: list[float] = []
        while len(tokens) < count:
            batch = chain_batch(pending, 0, wants_numbers=True)
            logits = (yield from self._engine.forward_steps(batch, self._session)).row(0)
            token = int(logits.argmax())
            chance = 1 / float(np.exp(logits - logits[token]).sum())
            self._session.commit(pending, [0])
            tokens.append(token)
            chances.append(chance * (chances[-1] if chances else 1.0))
            if token in self._engine.end_tokens or chance < self._least_confidence:
                break
            pending = np.array([token], np.int32)
        return tokens, chances

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Extend the context; the cache catches up at the next draft."""
        self._context = np.concatenate([self._context, np.asarray(tokens, np.int32)])
