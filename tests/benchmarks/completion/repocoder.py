"""Completion with RepoCoder's iterative prompt (the paper's Table III), by any method."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields, replace

from accel.decoding.engine import Engine
from accel.execution.statistics import Statistics
from lsp_server.shared.contract.jobs import ContextSnippet
from tests.benchmarks.completion.model import (
    CompletionMethod,
    CompletionTask,
    Decoded,
    prompt_budget,
    spelt_after,
)
from tests.benchmarks.completion.repocoder_prompt import iterated
from tests.benchmarks.completion.similar_windows import SimilarWindows
from tests.benchmarks.datastores import CaseDatastores, own_paths


class Prompts:
    """What prompts are made of, the same for all methods."""

    def __init__(
        self, engine: Engine, datastores: CaseDatastores, *, left_only: bool, max_tokens: int
    ) -> None:
        tokenizer = engine.tokenizer
        self.engine = engine
        self.left_only = left_only
        self.budget = prompt_budget(engine, max_tokens)
        self._windows = SimilarWindows(tokenizer.encode, tokenizer.decode, tokenizer.byte_table)
        self._datastores = datastores

    def after_retrieval(self, task: CompletionTask, prefix: str) -> CompletionTask:
        """``task`` with another text before the cursor."""
        suffix = "" if self.left_only else task.case.suffix
        prompt = self.engine.fim_prompt(prefix, suffix, path=task.case.path, budget=self.budget)
        request = replace(
            task.draft_request,
            prompt=prompt.text,
            suffix=prompt.suffix_tokens,
            model_prompt=prompt.tokens,
        )
        return replace(task, prompt=prompt, draft_request=request)

    def similar(self, task: CompletionTask, query: str) -> Sequence[ContextSnippet]:
        """Windows of the case's other files."""
        snapshot = self._datastores.snapshot(task.case, left_only=self.left_only)
        return self._windows.most_similar(snapshot, query, without=own_paths(task.case))


class RepoCoderDecoder:
    """A method behind the iterative prompt: times of both rounds are added up, as in the paper."""

    def __init__(self, decode: CompletionMethod, prompts: Prompts) -> None:
        self._decode = decode
        self._prompts = prompts

    def __call__(self, task: CompletionTask) -> Decoded:
        """Retrieve, decode, retrieve, decode."""
        prompts, tokenizer = self._prompts, self._prompts.engine.tokenizer
        rounds: list[tuple[CompletionTask, Decoded]] = []
        decoding_s = 0.0

        def generate(prefix: str) -> str:
            nonlocal decoding_s
            retrieved = prompts.after_retrieval(task, prefix)
            started = time.perf_counter()
            decoded = self._decode(retrieved)
            decoding_s += time.perf_counter() - started
            rounds.append((retrieved, decoded))
            spelt = spelt_after(retrieved.prompt, decoded.tokens, tokenizer)
            return spelt.decode("utf-8", errors="replace")

        started = time.perf_counter()
        iterated(
            lambda query: prompts.similar(task, query),
            generate,
            task.case.prefix,
            encode=tokenizer.encode,
            decode=tokenizer.decode,
            # The text after the cursor takes at least a quarter of a prompt.
            budget=3 * prompts.budget // 4,
        )
        prompt_s = time.perf_counter() - started - decoding_s
        last, decoded = rounds[-1]
        statistics = _sum([each.statistics for _, each in rounds])
        return Decoded(decoded.tokens, statistics, prompt_s, last.prompt)


def _sum(rounds: list[Statistics]) -> Statistics:
    """All counters and times added up."""
    total = Statistics()
    for each in rounds:
        for field in fields(Statistics):
            added = getattr(total, field.name) + getattr(each, field.name)
            setattr(total, field.name, added)
    return total
