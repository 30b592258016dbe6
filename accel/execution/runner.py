"""Forwards of one model on its sessions: prompts in chunks, and memory for their caches."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial

from accel.draft_tree import DraftTree, TokenArray
from accel.errors import Interrupted
from accel.execution.forwards import Forward, Forwards, out_of_memory
from accel.execution.prefix_store import PrefixStore
from accel.execution.session import Session
from accel.models.base import BatchKind, Logits, Model
from accel.models.batch import ForwardBatch, chain_batch, tree_batch

PREFILL_ROWS = 256, 128, 64
"""Rows of one prefill forward, between which cancel is checked: the most that are quick."""

PREFILL_S = 0.08
"""Seconds of a quick chunk of a prompt: a new request waits no longer."""

ROWS_BEHIND = 256
"""Rows that a cache reserves after a prompt, so that it grows before the first token."""

FIRST_ROWS = 1024
"""Rows of a new session's cache; it grows by half when they are used up."""


class _Prefill:
    """Uses a session while a prompt is computed ahead."""


class ModelRunner:
    """A model, its sessions, and prefixes that no session holds any more; together their keys and
    values stay below ``kv_budget`` bytes."""

    def __init__(self, model: Model, *, kv_budget: int = 1 << 31) -> None:
        self.model = model
        self.kv_budget = kv_budget
        self.prefill_rows = PREFILL_ROWS[0]
        """Rows of a prompt that are computed at once."""
        self.prefixes = PrefixStore()
        self._sessions: list[weakref.ref[Session]] = []

    @property
    def max_positions(self) -> int:
        """Tokens of prompt and output together that the model takes."""
        return self.model.max_positions

    @property
    def longest_prompt(self) -> int:
        """Tokens whose keys and values fit the model and ``kv_budget``."""
        token_bytes = self.model.new_cache(FIRST_ROWS).nbytes / FIRST_ROWS
        return min(self.max_positions, int(self.kv_budget / max(token_bytes, 1)))

    @property
    def takes_chains(self) -> bool:
        """Return whether several rows can be computed at once and some of them taken back."""
        return self.model.capability.kind >= BatchKind.CHAIN

    @property
    def takes_trees(self) -> bool:
        """Return whether rows can follow different rows of one forward."""
        return self.model.capability.kind == BatchKind.TREE

    @property
    def kv_bytes(self) -> int:
        """Bytes of all keys and values."""
        sessions = (session for each in self._sessions if (session := each()) is not None)
        return self.prefixes.nbytes + sum(session.nbytes for session in sessions)

    def keep(self, root: Hashable, session: Session) -> None:
        """Hold what ``session`` holds after it is gone, for prompts of ``root``."""
        self.prefixes.keep(root, session)
        self.prefixes.shrink(self.kv_budget - self.kv_bytes + self.prefixes.nbytes)

    def restore(self, root: Hashable, prompt: TokenArray, session: Session) -> None:
        """Have ``session`` hold the longest prefix of ``prompt`` that is kept for ``root``, where
        there is room for it."""
        try:
            self.prefixes.restore(root, prompt, session)
        except MemoryError:
            session.drop()

    def session(self) -> Session:
        """Return a line of requests that keeps its KV cache."""
        session = Session(lambda: self.model.new_cache(FIRST_ROWS))
        self._sessions.append(weakref.ref(session))
        return session

    def prefill_steps(
        self, tokens: TokenArray, session: Session, cancelled: Callable[[], bool] = lambda: False
    ) -> Forwards[bool]:
        """Compute a prompt ahead of its request. False when cancelled on the way."""
        with session.used_by(_Prefill()):
            self.prepare(session, tokens)
            return (yield from self.extend_steps(session, tokens[:-1], cancelled))

    def prepare(self, session: Session, prompt: TokenArray) -> int:
        """Trim a session to what it has in common with a prompt, and reserve rows for it.

        Returns the number of prompt tokens that are cached. Raises OutOfMemory.
        """
        self._evict(session)
        reused = session.reuse(prompt)
        self.reserve(session, min(len(prompt) + ROWS_BEHIND, self.max_positions) - reused)
        return reused

    def reserve(self, session: Session, rows: int) -> None:
        """Make sure that ``rows`` more rows fit, where sessions used longest ago hold them, by
        dropping these, but none whose request is under way. Raises OutOfMemory."""
        while True:
            try:
                session.cache.reserve(rows)
                return
            except MemoryError as error:
                if self.prefixes.nbytes:
                    self.prefixes.forget()
                    continue
                others = (s for ref in self._sessions if (s := ref()) is not None)
                unused = next(
                    (s for s in others if s is not session and s.nbytes and not s.is_used), None
                )
                if unused is None:
                    raise out_of_memory(self.model, session, rows) from error
                unused.drop()

    def extend_steps(
        self, session: Session, tokens: TokenArray, cancelled: Callable[[], bool]
    ) -> Forwards[bool]:
        """Compute ``tokens`` from where the session is, in chunks. False when cancelled."""
        while session.length < len(tokens):
            if cancelled():
                return False
            # A state that cannot be trimmed takes a whole text at once, or one token.
            last = len(tokens) if not session.length else 1
            step = self.prefill_rows if self.takes_chains else last
            chunk = tokens[session.length : session.length + step]
            least = 1 if self.takes_chains else len(chunk)
            self.reserve(session, len(chunk))
            forward = Forward(
                self.model, session, len(chunk), partial(self._prefill_batch, chunk), least
            )
            try:
                yield forward
            except Interrupted:
                continue
            session.commit(chunk[: forward.rows], list(range(forward.rows)))
        return True

    def forward_steps(self, batch: ForwardBatch, session: Session) -> Forwards[Logits]:
        """Return the logits of ``batch`` after the session's text. A forward that is interrupted
        begins again. Raises OutOfMemory."""
        self.reserve(session, len(batch))
        while True:
            try:
                logits: Logits = yield Forward.of(self.model, session, batch)
            except Interrupted:
                continue
            return logits

    def interrupt(self) -> None:
        """End the forward that is computed now; its caller decides whether to go on. For other
        threads."""
        self.model.interrupt()

    def _prefill_batch(self, chunk: TokenArray, rows: int) -> ForwardBatch:
        """Return the first ``rows`` rows of a chunk, without logits, padded to a number that the
        model computes fast."""
        chunk = chunk[:rows]
        capability = self.model.capability
        # With a fixed batch size prompts have none: padding would only cost.
        widths = () if capability.fixed_batch else capability.widths or ()
        target = next((width for width in widths if width >= len(chunk)), len(chunk))
        if target == len(chunk) or not self.takes_trees:
            return chain_batch(chunk, len(chunk))
        padded = tree_batch(chunk, DraftTree.empty(), target - len(chunk))
        return replace(padded, logits_from=target)

    def _evict(self, used: Session) -> None:
        """Drop the caches of the sessions used longest ago until all fit the budget, but of none
        whose request is under way."""
        alive = [s for ref in self._sessions if (s := ref()) is not None and s is not used]
        self._sessions = [weakref.ref(session) for session in [*alive, used]]
        total = used.nbytes + sum(session.nbytes for session in alive)
        self.prefixes.shrink(self.kv_budget - total)
        for session in alive:
            if total <= self.kv_budget:
                break
            if session.is_used:
                continue
            total -= session.nbytes
            session.drop()
