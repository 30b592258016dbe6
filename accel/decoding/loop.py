"""The loop that answers a request: draft, verify, commit."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from accel.decoding.drafting import Drafting
from accel.decoding.output import OutputBuffer
from accel.decoding.request import Chunk, GenerationRequest, StoppedBy
from accel.decoding.tree_verifier import TreeVerifier
from accel.draft_tree import DraftTree, TokenArray
from accel.drafting.base import DraftRequest
from accel.errors import Interrupted
from accel.execution.forwards import Forwards, Steps, told
from accel.execution.runner import ModelRunner
from accel.execution.session import Session
from accel.execution.statistics import Statistics
from accel.planning.planner import DraftPlan
from accel.text.tokenizer import Tokenizer

MERGED_ROWS = 32
"""The rows behind the last whole forward of a prompt, where they are this few, are computed
together with the first draft."""


class Generation:
    """A running generation. Iterate over it for chunks, or run its ``steps`` beside others'; the
    rest is complete after the end.

    Cancel is checked before every forward, and where one is interrupted. Leaving the iteration
    early is a cancel.
    """

    def __init__(
        self,
        runner: ModelRunner,
        tokenizer: Tokenizer,
        plan: DraftPlan,
        request: GenerationRequest,
        session: Session,
    ) -> None:
        request.check(runner.max_positions)
        self.request = request
        self.statistics = Statistics(prompt_tokens=len(request.prompt))
        self._runner, self._session = runner, session
        ends = request.stop_tokens | runner.model.end_tokens
        self._output = OutputBuffer(request, tokenizer, frozenset() if request.ignore_end else ends)
        self._drafting = Drafting(
            *(request.drafter, plan, runner.model.capability, tokenizer),
            self.statistics,
            plans=request.plan,
        )
        self._verifier = TreeVerifier(
            runner, tokenizer, plan, request, self._output, self.statistics
        )
        self._chunks: Iterator[Chunk] | None = None
        """Made when it is first read: where ``steps`` is run instead it would hold the generation
        until garbage is collected."""

    @property
    def tokens(self) -> TokenArray:
        """Tokens generated so far. int32 [n]."""
        return np.array(self._output.tokens, np.int32)

    @property
    def text(self) -> str:
        """Text so far, without the required prefix, cut by the stop rule."""
        return self._output.text

    @property
    def stopped_by(self) -> StoppedBy:
        """Return the reason of its end; ``cancelled`` until it ends."""
        return self._output.stopped_by

    def __iter__(self) -> Iterator[Chunk]:
        if self._chunks is None:
            self._chunks = told(self.steps())
        return self._chunks

    def finish(self) -> Generation:
        """Run to the end."""
        for _ in self:
            pass
        return self

    def steps(self) -> Steps[Chunk, None]:
        """Return the generation as work that asks for its forwards, in place of iterating over
        it."""
        with self._session.used_by(self):
            pending = yield from self._prefill()
            if pending is not None:
                yield from self._decode(pending)

    def _decode(self, pending: TokenArray) -> Steps[Chunk, None]:
        """Chunk by chunk after ``pending``, the last tokens of the prompt."""
        while not (self._output.is_finished or self.request.cancelled()):
            started = time.perf_counter()
            self._session.check(self)
            rows, context = len(pending), self._session.length
            tree = yield from self._drafting.tree(
                rows, context, self._max_nodes(rows), self._output.rest
            )
            verified = yield from self._verify(pending, tree)
            if verified is None:
                return
            chunk = self._commit(pending, *verified)
            pending = chunk.tokens[-1:]
            self.statistics.decode_s += time.perf_counter() - started
            if len(chunk.tokens) or chunk.confidences:
                yield chunk

    def _prefill(self) -> Forwards[TokenArray | None]:
        """Compute the prompt but for its last rows, which are returned; None when cancelled."""
        started = time.perf_counter()
        request, runner, session = self.request, self._runner, self._session
        drafted = request.draft_request or DraftRequest(request.prompt)
        yield from self._drafting.begin(drafted)
        reused = runner.prepare(session, request.prompt)
        self.statistics.prompt_tokens_reused = reused
        last = (len(request.prompt) - reused) % runner.prefill_rows
        merged = last if reused and 0 < last <= MERGED_ROWS and runner.takes_chains else 1
        first = len(request.prompt) - merged
        done = yield from runner.extend_steps(session, request.prompt[:first], request.cancelled)
        self.statistics.prefill_s = time.perf_counter() - started
        return request.prompt[first:].copy() if done else None

    def _max_nodes(self, pending: int) -> int:
        """Return how many nodes may be drafted by the request, tokens left and the context."""
        if self.request.max_tokens - len(self._output.tokens) <= 1:
            return 0
        room = self._runner.max_positions - self._session.length - pending
        return min(self.request.max_nodes, room)

    def _verify(
        self, pending: TokenArray, tree: DraftTree
    ) -> Forwards[tuple[DraftTree, list[int], TokenArray] | None]:
        """Return the tree that was verified, the path that the model accepts in it, and the tokens
        that it yields; None when cancelled in the middle of the forward."""
        while True:
            try:
                return (yield from self._verifier.verify(pending, tree, self._session))
            except Interrupted:
                if self.request.cancelled():
                    return None
                self._session.check(self)

    def _commit(
        self, pending: TokenArray, tree: DraftTree, path: list[int], tokens: TokenArray
    ) -> Chunk:
        """Keep the accepted rows, end where the request ends, and let the drafter learn."""
        was_pruned = bool(self._output.rest)
        count = self._output.take(tokens.tolist())
        if self._session.length + len(pending) + len(path) >= self._runner.max_positions:
            self._output.finish("length")
        path, accepted = path[:count], tokens[:count]
        self._session.commit_path(pending, path, accepted)
        self.statistics.record(tree, path, count)
        learnt = (DraftTree.empty(), []) if was_pruned else (tree, path)
        self._drafting.learn(*learnt, accepted, len(pending), self._session.length)
        noted = count + (self._output.stopped_by == "end")
        logprobs, confidences = self._verifier.logprobs[:count], self._verifier.confidences[:noted]
        return Chunk(accepted, tree.sources, path, logprobs, confidences)
