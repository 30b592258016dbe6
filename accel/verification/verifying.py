"""Verify drafts: one forward, and the walk along what the model itself chooses."""

from __future__ import annotations

import time
from collections.abc import Callable, Container

import numpy as np
from numpy.typing import NDArray

from accel.batch import tree_batch
from accel.draft_tree import DraftTree, TokenArray
from accel.models.base import Logits
from accel.output import OutputBuffer
from accel.planning.cost_table import CostTable
from accel.request import GenerationRequest
from accel.runner import ModelRunner
from accel.session import Session
from accel.statistics import Statistics
from accel.text.tokenizer import Tokenizer
from accel.verification.confidence import Confidences
from accel.verification.logits_processor import LogitsProcessor
from accel.verification.sampling import choose
from accel.verification.token_chances import TokenChance, token_chance
from accel.verification.verifier import relaxed, walk


class Verifying:
    """The verification of one request's drafts.

    Where the likeliest tokens are taken as they are, nothing but them is asked of the model;
    elsewhere rows are looked at as a whole.
    """

    def __init__(
        self,
        runner: ModelRunner,
        tokenizer: Tokenizer,
        costs: CostTable,
        request: GenerationRequest,
        output: OutputBuffer,
        statistics: Statistics,
    ) -> None:
        self._runner, self._tokenizer, self._costs = runner, tokenizer, costs
        self._request = request
        self._output, self._statistics = output, statistics
        self._takes_likeliest = request.sampling.plain_greedy
        self._is_lossy = request.entropy_top_k > 1
        self.chances: list[TokenChance] = []
        """Of the tokens of the last walk, where they were asked for."""
        self.confidences: list[float] = []
        """The same."""
        self._confidences = Confidences(tokenizer, request.required_prefix)
        self._processor = LogitsProcessor(request.sampling, request.prompt)

    def walk(
        self, pending: TokenArray, tree: DraftTree, session: Session
    ) -> tuple[list[int], TokenArray]:
        """Nodes of ``tree`` that the model agrees with behind ``pending``, and the tokens that this
        yields, one more, int32. Raises Interrupted and OutOfMemory."""
        started, context = time.perf_counter(), session.length
        is_likeliest = self._takes_likeliest and not self._output.rest
        batch = tree_batch(
            pending,
            tree,
            self._costs.padding(len(pending) + len(tree), context),
            wants_numbers=self._is_lossy or not is_likeliest or self._tells_chances,
        )
        logits = self._runner.forward(batch, session, again=False)
        if is_likeliest:
            token_of = logits.argmax()
            path, tokens = walk(
                tree, lambda node, _above: token_of[node + 1], self._relaxed(logits)
            )
        else:
            path, tokens = walk(tree, lambda node, above: self._chosen(logits.row(node + 1), above))
        if self._tells_chances:
            self._note_chances(logits, path, tokens)
        self._statistics.verify_s.append(time.perf_counter() - started)
        return path, np.array(tokens, np.int32)

    @property
    def _tells_chances(self) -> bool:
        return self._request.logprobs is not None or self._request.confidences

    def _note_chances(self, logits: Logits, path: list[int], tokens: list[int]) -> None:
        """How likely the tokens of a walk were."""
        rows = [logits.row(row) for row in [0, *(node + 1 for node in path)]]
        chosen = list(zip(rows, tokens, strict=True))
        if (count := self._request.logprobs) is not None:
            self.chances = [token_chance(row, token, count) for row, token in chosen]
        if self._request.confidences:
            self.confidences = [self._confidences.next(row, token) for row, token in chosen]

    def _relaxed(self, logits: Logits) -> Callable[[int], Container[int]] | None:
        """Which tokens of a draft model are accepted beside the likeliest, if any are."""
        request = self._request
        return relaxed(
            lambda node: logits.row(node + 1),
            self._runner.model.vocabulary_size,
            request.entropy_top_k,
            request.relaxed_rule,
        )

    def _chosen(self, logits: NDArray[np.float32], above: list[int]) -> int:
        """The next token of a node whose path from the committed text holds ``above``."""
        sampling, output = self._request.sampling, self._output
        rest = output.rest_after(above)
        if rest:
            allowed = self._tokenizer.byte_index.agreeing(rest)
            held = np.full_like(logits, -np.inf)
            held[allowed] = logits[allowed]
            logits = held
        scores = self._processor.scores(logits, output.tokens, above)
        return choose(scores, sampling, len(output.tokens) + len(above))
