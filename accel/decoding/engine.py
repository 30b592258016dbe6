"""The engine: one model, and the decoding of requests on it."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from accel.decoding.loop import Generation
from accel.decoding.request import GenerationRequest
from accel.draft_tree import DraftTree, Source
from accel.execution.runner import PREFILL_ROWS, PREFILL_S, ModelRunner
from accel.execution.session import Session
from accel.files.model_options import AdaptiveTokens, ModelOptions
from accel.models.backends import open_backend
from accel.models.base import Model
from accel.models.batch import tree_batch
from accel.models.costs.forward_costs import ForwardCosts
from accel.planning.acceptance_rate import expected_hits
from accel.planning.planner import AdaptivePlanner, FixedBatchPlanner, Planner
from accel.text.families import Order
from accel.text.other_files import Snippet
from accel.text.prompts import Prompt, fim_prompt
from accel.text.special_tokens import fim_format_of
from accel.text.tokenizer import Tokenizer
from operating_system.machine import free_bytes

PRELOAD_ROWS = 32

MUCH_LONGER = 1.3
"""Prompts are planned anew where one takes longer or shorter by such a factor."""

NEW_LINE_S = 0.15
"""Seconds for a suffix that is computed again with every line."""
LEAST_SUFFIX, MOST_SUFFIX, SUFFIX_STEP = 64, 512, 16
"""Least and most tokens of that suffix, and the step between budgets that are tried."""
TYPICAL_PREFIX = 1024
"""Tokens before it."""

LEAST_KV_BYTES = 1 << 26
"""Bytes for KV caches on a CPU when little memory is free; else half of the free memory."""


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
        self.tokenizer = tokenizer
        self.planner = planner
        self.name = name
        self.threads = threads
        self.execution_path = ""
        """Name of the forward: compiled, tree, chain, plain or llama.cpp."""
        self.adaptive_tokens: AdaptiveTokens = "auto"
        """The use of the model's adaptive tokens for drafts."""
        fim = fim_format_of(tokenizer)
        self.fills = fim is not None
        """True if the vocabulary has tokens to fill in the middle."""
        self._keeps_suffix = fim is None or fim.order != Order.PREFIX_FIRST
        self.suffix_budget: int | None = None
        """The most tokens of a suffix, where it is computed again with each line that is typed."""
        self._go_by_costs()

    @classmethod
    def load(
        cls,
        model: str | Path | None = None,
        *,
        preloads: bool = True,
        download: bool = False,
        kv_budget: int = 1 << 31,
        **options: Any,
    ) -> Engine:
        """``open`` with ``options`` by their names in ``ModelOptions``, None for the default."""
        named = {name: value for name, value in options.items() if value is not None}
        return cls.open(
            ModelOptions(path=str(model or ""), **named),
            preloads=preloads,
            download=download,
            kv_budget=kv_budget,
        )

    @classmethod
    def open(
        cls,
        options: ModelOptions,
        *,
        preloads: bool = True,
        download: bool = False,
        kv_budget: int = 1 << 31,
    ) -> Engine:
        """Load a folder, a GGUF file, or a hub id that is on this machine, see ``open_backend``.

        ``kv_budget`` bounds the KV caches of all sessions in bytes. With ``preloads``, what steps
        with drafts call is loaded now. The network is used only with ``download``. Raises
        ModelNotFound, BrokenModel, UnsupportedModel, OutOfMemory or InvalidRequest.
        """
        opened = open_backend(options, download=download)
        engine = cls(
            opened.model,
            opened.tokenizer,
            _planner(opened.model, opened.costs),
            name=options.path,
            threads=opened.threads,
            kv_budget=_affordable(opened.model, kv_budget),
        )
        engine.execution_path = opened.execution_path
        engine.adaptive_tokens = options.adaptive_tokens
        if preloads:
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
        stored = self.model.kv_type
        return self.dtype if stored == "f16" else f"{self.dtype}, keys and values in {stored}"

    @property
    def notice(self) -> str:
        """Return what the user should know about the model's computation; empty for nothing."""
        return self.planner.notice or self.model.notice

    @property
    def end_tokens(self) -> frozenset[int]:
        """Tokens that end the model's texts."""
        return self.model.end_tokens

    def generate(self, request: GenerationRequest, session: Session | None = None) -> Generation:
        """Start a generation; it runs as it is iterated over. Raises InvalidRequest."""
        drafted = request.draft_request
        is_edit = drafted is not None and drafted.original is not None
        plan = self.planner.begin(is_edit=is_edit)
        return Generation(self, self.tokenizer, plan, request, session or self.session())

    def fim_prompt(
        self,
        prefix: str,
        suffix: str,
        *,
        path: str = "",
        snippets: Sequence[Snippet] = (),
        budget: int = 2048,
    ) -> Prompt:
        """Return ``accel.text.prompts.fim_prompt`` with the budgets of this model."""
        return fim_prompt(
            self.tokenizer,
            prefix,
            suffix,
            path=path,
            snippets=snippets,
            budget=min(budget, self.max_positions - 1),
            suffix_budget=self.suffix_budget,
        )

    def keep_costs(self) -> bool:
        """Store the costs learnt so far, and have requests that begin from now on go by them;
        return whether a prompt takes much longer or shorter than these expected."""
        if (learnt := self.model.learnt) is not None:
            learnt.save()
        prompt_s = self.planner.costs.prefill_seconds(PREFILL_ROWS[0], TYPICAL_PREFIX)
        if abs(log(prompt_s / self._prompt_s)) < log(MUCH_LONGER):
            return False
        self._go_by_costs()
        return True

    def _go_by_costs(self) -> None:
        prefill_seconds = self.planner.costs.prefill_seconds
        self._prompt_s = prefill_seconds(PREFILL_ROWS[0], TYPICAL_PREFIX)
        quick = (rows for rows in PREFILL_ROWS if prefill_seconds(rows, 0) <= PREFILL_S)
        self.prefill_rows = next(quick, PREFILL_ROWS[-1])
        self.suffix_budget = self._suffix_budget()

    def _suffix_budget(self) -> int | None:
        if self._keeps_suffix:
            return None
        quick = (
            rows
            for rows in range(MOST_SUFFIX, LEAST_SUFFIX, -SUFFIX_STEP)
            if self.planner.costs.prefill_seconds(rows, TYPICAL_PREFIX) <= NEW_LINE_S
        )
        return next(quick, LEAST_SUFFIX)

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
        self.planner.costs.verify_costs(1, 0, 1.0, 0.0)


def _planner(model: Model, costs: ForwardCosts) -> Planner:
    if model.capability.fixed_batch:
        return FixedBatchPlanner(costs)
    return AdaptivePlanner(costs, widths=model.capability.widths)


def _affordable(model: Model, kv_budget: int) -> int:
    """Return the bytes for KV caches, on a CPU the most that leaves as much for other programs."""
    if model.device != "cpu":
        return min(kv_budget, 1 << 31)
    return min(kv_budget, max(free_bytes() // 2, LEAST_KV_BYTES))
