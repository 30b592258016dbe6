"""The engine: one model, and the decoding of requests on it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from accel.draft_tree import DraftTree, TokenArray
from accel.errors import InvalidRequest, OutOfMemory
from accel.generation import PREFILL_ROWS, Generation, GenerationRequest
from accel.loading import end_tokens, find_folder, is_out_of_memory, load_module
from accel.model import Capability, Model, TransformersModel
from accel.rows import Rows, chain_rows
from accel.session import Session
from accel.tokenizer import Tokenizer

DType = Literal["auto", "fp32", "bf16"]

FIRST_ROWS = 1024
"""Rows that a new session has room for; it grows by half when they are used up."""

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class Engine:
    """A loaded model. Requests are decoded by one thread; several may be under way in turn."""

    def __init__(
        self,
        model: Model,
        tokenizer: Tokenizer,
        *,
        name: str,
        end_tokens: frozenset[int],
        kv_budget: int = 1 << 31,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.name = name
        self.end_tokens = end_tokens
        self.kv_budget = kv_budget
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
        if dtype not in ("auto", *_DTYPES):
            raise InvalidRequest(f"dtype {dtype!r} is unknown; give auto, fp32 or bf16")
        folder = find_folder(model, download=download)
        place = _device(device)
        if threads is not None:
            torch.set_num_threads(threads)
        module = load_module(folder, _DTYPES.get(dtype, torch.float32), place)
        return cls(
            TransformersModel(module, Capability.TREE),
            Tokenizer.from_folder(folder),
            name=folder.name if model is not None else "embedded",
            end_tokens=end_tokens(module),
            kv_budget=kv_budget,
        )

    @property
    def dtype(self) -> str:
        """``fp32`` or ``bf16`` (or the name of another torch dtype)."""
        names = {value: key for key, value in _DTYPES.items()}
        return names.get(self.model.dtype, str(self.model.dtype).removeprefix("torch."))

    @property
    def max_positions(self) -> int:
        """Tokens of prompt and output together that the model takes."""
        return self.model.max_positions

    @property
    def takes_chains(self) -> bool:
        """Whether several rows may be computed at once and some of them taken back."""
        return self.model.capability >= Capability.CHAIN

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

        Returns the number of prompt tokens held.
        """
        self._evict(session)
        return session.reuse(prompt)

    def extend(self, session: Session, tokens: TokenArray, cancelled: Callable[[], bool]) -> bool:
        """Compute ``tokens`` from where the session stands, in chunks. False when cancelled."""
        step = PREFILL_ROWS if self.takes_chains else 1
        while session.length < len(tokens):
            if cancelled():
                return False
            chunk = tokens[session.length : session.length + step]
            self.forward(chain_rows(chunk, len(chunk)), session)
            session.keep(chunk, list(range(len(chunk))))
        return True

    def forward(self, rows: Rows, session: Session) -> Tensor:
        """Logits of ``rows`` after the session's text. Raises OutOfMemory."""
        try:
            with torch.inference_mode():
                return self.model.forward(rows, session.cache)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            session.drop()
            raise OutOfMemory(
                f"no room for {session.length + len(rows)} tokens of KV cache on "
                f"{self.model.device}; use a shorter prompt or a smaller model"
            ) from error

    def fit(self, tree: DraftTree, pending: int) -> DraftTree:
        """The part of a draft tree that is worth its forward."""
        return tree

    def padding(self, rows: int) -> int:
        """Rows to add so that the forward is faster than without them."""
        return 0

    def learn(self, tree: DraftTree, path: list[int]) -> None:
        """Note how much of a tree was accepted."""

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


def _device(name: str) -> torch.device:
    """The device asked for; auto is CUDA, then MPS, then the CPU."""
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
