"""The engine: one model, and the decoding of requests on it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from accel.choice import Odds
from accel.compiled_stage import Limits, Made, Steps
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drawing import GREEDY, Draws
from accel.errors import InvalidRequest, OutOfMemory
from accel.formats import Order
from accel.generation import PREFILL_ROWS, Generation, GenerationRequest
from accel.loading import check_folder, find_folder, is_out_of_memory
from accel.model import Capability, Model
from accel.opening import DTYPES, choose_settings, open_model, profile
from accel.order import find_order
from accel.planner import Planner
from accel.prompts import Prompt, Snippet, fim_prompt
from accel.rows import Rows, chain_rows, tree_rows
from accel.session import Session
from accel.sources.asking import Asking
from accel.sources.protocol import Drafter
from accel.stepping import most_steps
from accel.store import Store, fingerprint
from accel.tokenizer import Tokenizer
from accel.verifier import expected_hits

DType = Literal["auto", "fp32", "bf16"]

PREFILL_STEP = 32
"""The last chunk of a prompt has a multiple of this many rows."""

ROWS_BEHIND = 256
"""Rows that a cache has room for behind a prompt: it rather grows before the first token."""

FIRST_ROWS = 1024
"""Rows that a new session has room for; it grows by half when they are used up."""


class Engine:
    """A loaded model. Requests are decoded by one thread; several may be under way in turn."""

    def __init__(
        self,
        model: Model,
        tokenizer: Tokenizer,
        planner: Planner,
        *,
        name: str,
        end_tokens: frozenset[int],
        threads: int,
        kv_budget: int = 1 << 31,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.planner = planner
        self.name = name
        self.end_tokens = end_tokens
        self.threads = threads
        self.kv_budget = kv_budget
        self.path = ""
        """How forwards are computed: compiled, lean, tree, chain or plain."""
        self.fim_order: Order | None = None
        """Order of fill-in-the-middle prompts with the least loss, None without such tokens."""
        self._sessions: list[weakref.ref[Session]] = []

    @classmethod
    def load(
        cls,
        model: str | Path | None = None,
        *,
        dtype: DType = "auto",
        threads: int | None = None,
        device: str = "auto",
        download: bool = False,
        kv_budget: int = 1 << 31,
    ) -> Engine:
        """Load a folder, a hub id that is on this machine, or the embedded model (None).

        ``dtype`` auto takes the faster of fp32 and bf16, by measurement; ``threads`` None the
        fastest number; ``kv_budget`` bounds the KV caches of all sessions in bytes. The network
        is used only with ``download``. Raises ModelNotFound, BrokenModel, UnsupportedModel,
        OutOfMemory or InvalidRequest.
        """
        if dtype not in ("auto", *DTYPES):
            raise InvalidRequest(f"dtype {dtype!r} is unknown; give auto, fp32 or bf16")
        if threads is not None and threads < 1:
            raise InvalidRequest(f"threads is {threads}; give 1 or more")
        folder = find_folder(model, download=download)
        check_folder(folder)
        tokenizer = Tokenizer.from_folder(folder)
        place = device_of(device)
        store = Store(fingerprint(folder, str(place)))
        settings = choose_settings(folder, dtype, threads, place, store)
        torch.set_num_threads(settings.threads)
        opened = open_model(folder, settings.dtype, place, store, may_share=settings.may_share)
        engine = cls(
            opened.model,
            tokenizer,
            Planner(
                profile(opened.model, settings, store),
                can_pad=_can_pad(opened.model),
            ),
            name="embedded" if model is None else str(model),
            end_tokens=opened.end_tokens,
            threads=settings.threads,
            kv_budget=kv_budget,
        )
        engine.path = opened.path
        engine.fim_order = engine._find_order(store)
        engine.take_a_step()
        engine.warm_up()
        return engine

    @property
    def dtype(self) -> str:
        """``fp32`` or ``bf16`` (or the name of another torch dtype)."""
        names = {value: key for key, value in DTYPES.items()}
        return names.get(self.model.dtype, str(self.model.dtype).removeprefix("torch."))

    @property
    def max_positions(self) -> int:
        """Tokens of prompt and output together that the model takes."""
        return self.model.max_positions

    @property
    def takes_chains(self) -> bool:
        """Whether several rows may be computed at once and some of them taken back."""
        return self.model.capability >= Capability.CHAIN

    @property
    def takes_trees(self) -> bool:
        """Whether rows may follow different rows of one forward."""
        return self.model.capability == Capability.TREE

    def warm_up(self, drafter: Drafter | None = None) -> None:
        """Compile, or load the compiled form of, what makes several steps at a time, plainly or
        with a drafter of this kind: the first request would wait for it, for 40 ms or seconds."""
        model = self.model
        if not model.runs_steps or most_steps(self.planner.seconds(1, 0)) < 2:
            return
        prompt = np.array([1, 2, 1, 2, 1], np.int32)
        # While the second thread is thought to be late, nothing would be called.
        model.shares_patiently(True)
        self.generate(GenerationRequest(prompt, 100, drafter, ignore_end=True)).finish()
        model.shares_patiently(False)

    def session(self) -> Session:
        """A line of requests that keeps its KV cache."""
        session = Session(lambda: self.model.new_cache(FIRST_ROWS))
        self._sessions.append(weakref.ref(session))
        return session

    def generate(self, request: GenerationRequest, session: Session | None = None) -> Generation:
        """Start a generation; it runs as it is iterated over. Raises InvalidRequest."""
        return Generation(self, request, session or self.session())

    def prefill(
        self, tokens: TokenArray, session: Session, cancelled: Callable[[], bool] = lambda: False
    ) -> bool:
        """Compute a prompt ahead of its request. False when cancelled on the way."""
        session.take(None)
        self.prepare(session, tokens)
        return self.extend(session, tokens[:-1], cancelled)

    def prepare(self, session: Session, prompt: TokenArray) -> int:
        """Trim a session to what it has in common with a prompt, and make room for it.

        Returns the number of prompt tokens held. Raises OutOfMemory.
        """
        self._evict(session)
        reused = session.reuse(prompt)
        coming = min(len(prompt) + ROWS_BEHIND, self.max_positions) - reused
        try:
            session.cache.reserve(coming)
        except (RuntimeError, MemoryError) as error:
            self._refuse_for_memory(coming, session, error)
            raise
        return reused

    def extend(self, session: Session, tokens: TokenArray, cancelled: Callable[[], bool]) -> bool:
        """Compute ``tokens`` from where the session stands, in chunks. False when cancelled.

        Of a model with a speculator, ``Model.state_of`` the last row is there then.
        """
        while session.length < len(tokens):
            if cancelled():
                return False
            # A state that cannot be trimmed takes a whole text at once, or one token.
            whole = len(tokens) if not session.length else 1
            step = PREFILL_ROWS if self.takes_chains else whole
            chunk = tokens[session.length : session.length + step]
            is_last = session.length + len(chunk) == len(tokens)
            self.forward(self._prefill_rows(chunk, is_last=is_last), session)
            session.keep(chunk, list(range(len(chunk))))
        return True

    def forward(self, rows: Rows, session: Session) -> Tensor:
        """Logits of ``rows`` after the session's text. Raises OutOfMemory."""
        return self.forward_with_masks(rows, session)[0]

    def forward_with_masks(self, rows: Rows, session: Session) -> tuple[Tensor, Tensor]:
        """Logits of ``rows``, and normalised states of its mask rows. Raises OutOfMemory."""
        try:
            with torch.inference_mode():
                return self.model.forward_with_masks(rows, session.cache)
        except (RuntimeError, MemoryError) as error:
            self._refuse_for_memory(len(rows), session, error)
            raise

    def verify(
        self, rows: Rows, tree: DraftTree, session: Session, draws: Draws = GREEDY
    ) -> tuple[list[int], TokenArray]:
        """``Model.verify`` after the session's text. Raises OutOfMemory."""
        try:
            return self.model.verify(rows, tree, session.cache, draws)
        except (RuntimeError, MemoryError) as error:
            self._refuse_for_memory(len(rows), session, error)
            raise

    def interrupt(self) -> None:
        """Have the generation that is decoded now ask whether it is cancelled after one forward,
        where it makes several in one call. For other threads."""
        if self.model.runs_steps:
            self.model.interrupt()

    def run_steps(
        self,
        last: int,
        drafting: tuple[Asking, Odds] | None,
        session: Session,
        limits: Limits,
        draws: Draws,
    ) -> tuple[Made, Steps]:
        """``Model.run_steps`` after the session's text. Raises OutOfMemory."""
        try:
            return self.model.run_steps(last, drafting, session.cache, limits, draws)
        except (RuntimeError, MemoryError) as error:
            self._refuse_for_memory(limits.nodes + 1, session, error)
            raise

    def _refuse_for_memory(self, rows: int, session: Session, error: Exception) -> None:
        """Drop the session and raise OutOfMemory where that is what an error says."""
        if is_out_of_memory(error):
            needed = session.length + rows
            session.drop()
            raise OutOfMemory(
                f"no room for {needed} tokens of KV cache on "
                f"{self.model.device}; use a shorter prompt or a smaller model"
            ) from error

    def fim_prompt(
        self,
        prefix: str,
        suffix: str,
        *,
        path: str = "",
        snippets: Sequence[Snippet] = (),
        budget: int = 2048,
    ) -> Prompt:
        """``accel.prompts.fim_prompt`` in the order that this model was trained for."""
        return fim_prompt(
            self.tokenizer,
            prefix,
            suffix,
            path=path,
            snippets=snippets,
            budget=min(budget, self.max_positions - 1),
            order=self.fim_order,
        )

    def take_a_step(self) -> None:
        """Load the compiled form of what steps with drafts call: some 40 ms, for which the first
        request would wait."""
        if not self.takes_trees:
            return
        cache = self.model.new_cache(PREFILL_STEP)
        siblings = DraftTree.chain(np.zeros(2, np.int32), Source.MODEL)
        siblings.parents[:] = -1
        with torch.inference_mode():
            self.model.forward(tree_rows(np.zeros(1, np.int32), siblings), cache)
        cache.keep([0, 2])
        expected_hits(siblings, [1])
        self.planner.prices(1, 0, 1.0, 0.0)

    def _prefill_rows(self, chunk: TokenArray, *, is_last: bool) -> Rows:
        """Rows whose logits nobody wants, their number in steps where rows may be added: a new
        number costs the CPU's kernels some milliseconds to compile."""
        if is_last and self.model.speculator is not None:
            return chain_rows(chunk, len(chunk) - 1)
        if not _can_pad(self.model) or len(chunk) == PREFILL_ROWS:
            return chain_rows(chunk, len(chunk))
        return replace(
            tree_rows(chunk, DraftTree.empty(), -len(chunk) % PREFILL_STEP),
            logits_from=len(chunk) + -len(chunk) % PREFILL_STEP,
        )

    def _find_order(self, store: Store) -> Order | None:
        """The order with the least loss, found once for a model."""
        kept = store.get("order")
        if kept in [order.value for order in Order]:
            return Order(kept)
        found = find_order(self)
        store.put("order", found.value if found else "none")
        return found

    def _evict(self, used: Session) -> None:
        """Drop the caches of the sessions used longest ago until all fit the budget."""
        alive = [s for ref in self._sessions if (s := ref()) is not None and s is not used]
        self._sessions = [weakref.ref(session) for session in [*alive, used]]
        total = used.nbytes + sum(session.nbytes for session in alive)
        for session in alive:
            if total <= self.kv_budget:
                break
            total -= session.nbytes
            session.drop()


def _can_pad(model: Model) -> bool:
    """Whether rows without meaning may be added, and bring a number of rows that is fast."""
    return model.capability == Capability.TREE and model.has_fixed_shapes


def device_of(name: str) -> torch.device:
    """The device asked for; auto is CUDA, then MPS, then the CPU. Raises InvalidRequest."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidRequest(f"device {name!r} is not usable here; give auto or cpu") from error
    return device
