"""The engine: one model, and the decoding of requests on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from accel.batch import chain_batch, tree_batch
from accel.decoding import Generation
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.errors import AccelError
from accel.free_memory import free_bytes
from accel.models.base import KvType, Model
from accel.models.llama_cpp.options import FlashAttention
from accel.models.registry import BackendName, DType, open_backend
from accel.planning.cost_model import ForwardCosts
from accel.planning.planner import Planner
from accel.planning.profile_store import ProfileStore
from accel.request import GenerationRequest
from accel.runner import PREFILL_ROWS, PREFILL_S, ModelRunner
from accel.session import Session
from accel.text.families import Order
from accel.text.fim_order import find_order
from accel.text.other_files import Snippet
from accel.text.prompts import Prompt, fim_prompt
from accel.text.tokenizer import Tokenizer
from accel.verification.verifier import expected_hits

if TYPE_CHECKING:
    from accel.models.llama_cpp.opening import Later

PRELOAD_ROWS = 32

LEAST_KV_BYTES = 1 << 26
"""KV caches may take so much on a CPU, however little memory is free; above it half of that."""


class Engine(ModelRunner):
    """A loaded model. Requests are decoded by one thread; several may be under way in turn."""

    def __init__(
        self,
        model: Model,
        tokenizer: Tokenizer,
        planner: Planner,
        *,
        name: str,
        threads: int,
        kv_budget: int = 1 << 31,
    ) -> None:
        super().__init__(model, kv_budget=kv_budget)
        fitting = (rows for rows in PREFILL_ROWS if planner.prefill_seconds(rows, 0) <= PREFILL_S)
        self.prefill_rows = next(fitting, PREFILL_ROWS[-1])
        self.tokenizer = tokenizer
        self.planner = planner
        self.name = name
        self.threads = threads
        self._later: Later | None = None
        self.form = ""
        """How forwards are computed: compiled, static, lean, tree, chain or plain."""
        self.fim_order: Order | None = None
        """Order of fill-in-the-middle prompts with the least loss, None without such tokens."""

    @classmethod
    def load(
        cls,
        model: str | Path | None = None,
        *,
        dtype: DType = "auto",
        threads: int | None = None,
        device: str = "auto",
        backend: BackendName = "auto",
        kv_type: KvType = "f16",
        gpu_layers: int | None = None,
        flash_attention: FlashAttention = "auto",
        measures_later: bool = False,
        download: bool = False,
        kv_budget: int = 1 << 31,
    ) -> Engine:
        """Load a folder, a hub id that is on this machine, or the embedded model (None).

        ``dtype`` auto takes the faster of fp32 and bf16, by measurement; ``threads`` None the
        fastest number; ``backend`` and what follows it: see ``open_backend``; ``kv_budget`` bounds
        the KV caches of all sessions in bytes. The network is used only with ``download``. Raises
        ModelNotFound, BrokenModel, UnsupportedModel, OutOfMemory or InvalidRequest.
        """
        opened = open_backend(
            model,
            dtype=dtype,
            threads=threads,
            device=device,
            backend=backend,
            kv_type=kv_type,
            gpu_layers=gpu_layers,
            flash_attention=flash_attention,
            measures_later=measures_later,
            download=download,
        )
        engine = cls(
            opened.model,
            opened.tokenizer,
            _planner(opened.model, opened.costs),
            name="embedded" if model is None else str(model),
            threads=opened.threads,
            kv_budget=kv_budget if opened.model.device != "cpu" else _with_room(kv_budget),
        )
        engine.form = opened.form
        engine._later = opened.later
        engine.fim_order = _kept_order(engine, opened.store)
        engine.preload()
        return engine

    @property
    def dtype(self) -> str:
        """``fp32``, ``bf16`` or the name of another format."""
        return self.model.dtype

    @property
    def formats(self) -> str:
        """The number format of its weights, and that of keys and values where it is not the usual
        one."""
        kept = self.model.kv_type
        return self.dtype if kept == "f16" else f"{self.dtype}, keys and values in {kept}"

    @property
    def end_tokens(self) -> frozenset[int]:
        """Tokens that end the model's texts."""
        return self.model.end_tokens

    def generate(self, request: GenerationRequest, session: Session | None = None) -> Generation:
        """Start a generation; it runs as it is iterated over. Raises InvalidRequest."""
        told = request.draft_request
        is_edit = told is not None and told.original is not None
        planner, log = self.planner, None
        if self.model.fixed_widths is not None:
            planner, log = self.model.fixed_widths.begin(is_edit=is_edit)
        return Generation(self, self.tokenizer, planner, request, session or self.session(), log)

    def fim_prompt(
        self,
        prefix: str,
        suffix: str,
        *,
        path: str = "",
        snippets: Sequence[Snippet] = (),
        budget: int = 2048,
    ) -> Prompt:
        """``accel.text.prompts.fim_prompt`` in the order that this model was trained for."""
        return fim_prompt(
            self.tokenizer,
            prefix,
            suffix,
            path=path,
            snippets=snippets,
            budget=min(budget, self.max_positions - 1),
            order=self.fim_order,
        )

    def likelihood(self, prompt: TokenArray, target: TokenArray) -> float:
        """Log likelihood (nats) of ``target`` behind ``prompt``, int32 both."""
        tokens = np.concatenate([prompt, target[:-1]]).astype(np.int32)
        batch = chain_batch(tokens, len(prompt) - 1, wants_numbers=True)
        logits = self.forward(batch, self.session())
        total = 0.0
        for place, token in enumerate(target.tolist()):
            row = logits.row(place).astype(np.float64)
            highest = row.max()
            total += float(row[token] - highest - np.log(np.exp(row - highest).sum()))
        return total

    def measure(self, interrupted: Callable[[], bool] = lambda: False) -> bool:
        """Go on measuring what forwards cost, where that was left for later, until it is known or
        ``interrupted``. Requests that begin from then on are planned by it, those under way as they
        were. Whether it is known now, and was not before."""
        if self._later is None:
            return False
        try:
            costs = self._later.go_on(interrupted)
        except AccelError:
            # It is measured with the next start.
            costs, self._later = None, None
        if costs is None:
            return False
        self._later = None
        self.planner = _planner(self.model, costs)
        return True

    def preload(self) -> None:
        """Load the compiled form of what steps with drafts call, for which the first request would
        wait."""
        if not self.takes_trees:
            return
        cache = self.model.new_cache(PRELOAD_ROWS)
        siblings = DraftTree.chain(np.zeros(2, np.int32), Source.MODEL)
        siblings.parents[:] = -1
        self.model.forward(tree_batch(np.zeros(1, np.int32), siblings), [cache])
        cache.commit([0, 2])
        expected_hits(siblings, [1])
        self.planner.prices(1, 0, 1.0, 0.0)


def _planner(model: Model, costs: ForwardCosts) -> Planner:
    if model.fixed_widths is None:
        return Planner(costs, widths=model.capability.widths)
    # Each request gets its own; this one tells what else takes how long.
    planner, _ = model.fixed_widths.begin(is_edit=False)
    return planner


def _with_room(kv_budget: int) -> int:
    """What may be taken of memory for KV caches, so that as much stays free for others."""
    return min(kv_budget, max(free_bytes() // 2, LEAST_KV_BYTES))


def _kept_order(engine: Engine, store: ProfileStore) -> Order | None:
    """The order of a prompt's parts with the least loss, found once for a model."""
    kept = store.get("order")
    if kept in [order.value for order in Order]:
        return Order(kept)
    found = find_order(engine.tokenizer, engine.likelihood if engine.takes_chains else None)
    store.put("order", found.value if found else "none")
    return found
