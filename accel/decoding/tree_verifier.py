"""Verify drafts: one forward over the tree, then the path that the model itself chooses."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from accel.decoding.output import OutputBuffer
from accel.decoding.request import GenerationRequest
from accel.draft_tree import DraftTree, TokenArray
from accel.drafting.base import LookingDrafter
from accel.execution.forwards import Forward, Forwards
from accel.execution.runner import ModelRunner
from accel.execution.session import Session
from accel.execution.statistics import Statistics
from accel.models.array_logits import VerifiedLogits
from accel.models.base import Logits
from accel.models.batch import ForwardBatch, tree_batch
from accel.planning.planner import DraftPlan
from accel.text.tokenizer import Tokenizer
from accel.verification.choosing import choose
from accel.verification.confidence import Confidence, Confidences, Logprob, logprob_of
from accel.verification.logits_processor import LogitsProcessor
from accel.verification.verify_tree import Relaxed, verify_tree

_UNKNOWN = np.empty(0, np.float32)


class TreeVerifier:
    """The verification of one request's drafts. Greedy verification needs only the argmax of each
    row; other rules read whole rows of logits."""

    def __init__(
        self,
        runner: ModelRunner,
        tokenizer: Tokenizer,
        plan: DraftPlan,
        request: GenerationRequest,
        output: OutputBuffer,
        statistics: Statistics,
    ) -> None:
        self._runner, self._tokenizer, self._plan = runner, tokenizer, plan
        self._request = request
        self._output, self._statistics = output, statistics
        self._takes_likeliest = request.sampling.plain_greedy and request.grammar is None
        drafter: object = request.drafter
        self._looking = drafter if isinstance(drafter, LookingDrafter) else None
        self.logprobs: list[Logprob] = []
        """Of the tokens of the last verification, where the request asks for them."""
        self.confidences: list[Confidence] = []
        """The same."""
        ends = request.stop_tokens | runner.model.end_tokens
        if request.confidences and request.following:
            ends |= tokenizer.leading_to(request.following)
        own_ends = sorted(token for token in ends if token < runner.model.vocabulary_size)
        self._confidences = Confidences(
            tokenizer, request.required_prefix, np.array(own_ends, np.int64)
        )
        self._processor = LogitsProcessor(request.sampling, request.prompt)

    def verify(
        self, pending: TokenArray, tree: DraftTree, session: Session
    ) -> Forwards[tuple[DraftTree, list[int], TokenArray]]:
        """Return the first nodes of ``tree`` that were verified, those that the model accepts after
        ``pending``, and the tokens that this yields, one more, int32. Raises Interrupted and
        OutOfMemory."""
        started, context, count = time.perf_counter(), session.length, len(pending)
        is_likeliest = self._takes_likeliest and not self._output.rest
        relaxed = self._request.relaxed
        looks = self._looking is not None and self._looking.looks
        wants_numbers = relaxed is not None or not is_likeliest or self._wants_logprobs or looks

        def batch_of(rows: int) -> ForwardBatch:
            padding = self._plan.costs.padding(rows, context)
            cut = tree if rows == count + len(tree) else tree.prefix(rows - count)
            return tree_batch(pending, cut, padding, wants_numbers=wants_numbers)

        # Drafts that are verified as they are drafted cannot be cut.
        least = count if self._request.plan else count + len(tree)
        forward = Forward(
            *(self._runner.model, session, count + len(tree), batch_of, least),
            tree.probabilities * np.float32(self._plan.acceptance.scale)
            if self._request.plan and len(tree)
            else _UNKNOWN,
        )
        forward.may_try = bool(self._output.tokens)
        self._runner.reserve(session, forward.rows)
        logits: Logits = yield forward
        tree = tree if forward.rows == count + len(tree) else tree.prefix(forward.rows - count)
        path, tokens = self._chosen(logits, tree, relaxed, is_likeliest=is_likeliest)
        if self._wants_logprobs:
            self._note_logprobs(logits, path, tokens.tolist())
        if self._looking is not None:
            self._looking.look(tree, path[-1] if path else -1, lambda node: logits.row(node + 1))
        self._statistics.verify_s.append(time.perf_counter() - started)
        return tree, path, tokens

    def _chosen(
        self, logits: Logits, tree: DraftTree, relaxed: Relaxed | None, *, is_likeliest: bool
    ) -> tuple[list[int], TokenArray]:
        """Return the path that is accepted in a tree, and the tokens that it yields."""
        if isinstance(logits, VerifiedLogits):
            return logits.path, logits.tokens
        if is_likeliest:
            token_of = logits.argmax()
            path, tokens = verify_tree(
                tree,
                lambda node, _above: token_of[node + 1],
                None if relaxed is None else lambda node: relaxed(logits.row(node + 1)),
            )
        else:
            path, tokens = verify_tree(
                tree, lambda node, above: self._sampled(logits.row(node + 1), above)
            )
        return path, np.array(tokens, np.int32)

    @property
    def _wants_logprobs(self) -> bool:
        return self._request.logprobs is not None or self._request.confidences

    def _note_logprobs(self, logits: Logits, path: list[int], tokens: list[int]) -> None:
        """Note how likely the verified tokens were."""
        rows = [logits.row(row) for row in [0, *(node + 1 for node in path)]]
        chosen = list(zip(rows, tokens, strict=True))
        if (count := self._request.logprobs) is not None:
            self.logprobs = [logprob_of(row, token, count) for row, token in chosen]
        if self._request.confidences:
            self.confidences = [self._confidences.next(row, token) for row, token in chosen]

    def _sampled(self, logits: NDArray[np.float32], above: list[int]) -> int:
        """Return the next token of a node whose path from the committed text holds ``above``."""
        sampling, output = self._request.sampling, self._output
        rest = output.rest_after(above)
        if rest:
            allowed = self._tokenizer.byte_index.agreeing(rest)
            masked = np.full_like(logits, -np.inf)
            masked[allowed] = logits[allowed]
            logits = masked
        if self._request.grammar is not None:
            logits = self._request.grammar.masked(logits, output.tokens, above)
        scores = self._processor.scores(logits, output.tokens, above)
        return choose(scores, sampling, len(output.tokens) + len(above))
