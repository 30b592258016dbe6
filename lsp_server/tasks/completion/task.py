"""A completion as a task: its prompt, how long that is and what is in it, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lsp_server.shared.contract.jobs import CompletionJob, ContextSnippet
from lsp_server.shared.contract.prompt_length import MOST_TOKENS, PromptLength
from lsp_server.shared.errors import NothingToContinue
from lsp_server.tasks.completion import stopping
from lsp_server.tasks.completion.confidence_gate import GateWatch
from lsp_server.tasks.pool import Key
from lsp_server.tasks.task import Cancelled, Task, new_task
from lsp_server.text.surrogates import replace_surrogates

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.text.prompts import Beginning, Prompt

CONTEXT_TOKENS = 1024
"""This file's part of a prompt where no time is given for it."""
CONTEXT_S = 0.06
"""Time that text of other files may add to a cold prompt; a warm one has it in its KV cache."""
MOST_CONTEXT_TOKENS = 1024
CONTEXT_STEP = 64
PROBED_ROWS = 128
"""Rows of the forward from whose time the speed of a prefill is taken."""


def prompt_length(engine: Engine) -> PromptLength:
    """Return the longest prompts of a completion that this model computes, by seconds."""
    most = min(engine.longest_prompt, MOST_TOKENS)
    return PromptLength.measured(engine.planner.costs.prefill_seconds, engine.prefill_rows, most)


class Budget(NamedTuple):
    """Tokens of a prompt, and of other files in it."""

    prompt: int
    others: int


def completion_budget(engine: Engine, job: CompletionJob, length: PromptLength) -> Budget:
    """Return the most tokens that the prompt of a completion may have."""
    others = _context_tokens(engine, job)
    most_tokens = CONTEXT_TOKENS + others
    if job.prompt_seconds:
        most_tokens = length.tokens(job.prompt_seconds)
        others = min(others, most_tokens // 4)
    return Budget(min(engine.max_positions - job.max_tokens - 1, most_tokens), others)


def completion_prompt(
    engine: Engine, job: CompletionJob, snippets: list[ContextSnippet], budget: Budget
) -> Prompt:
    """Return the prompt of a completion, with text of other files. Raises NothingToContinue or
    AccelError (``accel.errors``)."""
    from accel.text.prompts import fim_prompt

    prompt = fim_prompt(
        engine.tokenizer,
        replace_surrogates(job.prefix),
        replace_surrogates(job.suffix),
        path=job.path,
        repository=replace_surrogates(job.repository),
        snippets=readable_snippets(snippets),
        budget=budget.prompt,
        snippet_budget=budget.others,
        suffix_budget=engine.suffix_budget,
    )
    if not len(prompt.tokens):
        raise NothingToContinue("there is no text to go on from; write the first words")
    return prompt


def completion_beginning(
    engine: Engine, job: CompletionJob, snippets: list[ContextSnippet], budget: Budget
) -> Beginning:
    """Return the tokens that the prompts of a newly opened document begin with."""
    from accel.text.prompts import fim_beginning

    return fim_beginning(
        engine.tokenizer,
        replace_surrogates(job.prefix),
        path=job.path,
        repository=replace_surrogates(job.repository),
        snippets=readable_snippets(snippets),
        budget=budget.prompt,
        snippet_budget=budget.others,
    )


def readable_snippets(snippets: list[ContextSnippet]) -> list[ContextSnippet]:
    """Return the same without lone surrogates."""
    return [ContextSnippet(snippet.path, replace_surrogates(snippet.text)) for snippet in snippets]


def _context_tokens(engine: Engine, job: CompletionJob) -> int:
    """Return tokens of other files in the prompt of a job: what was asked for, or what is computed
    in :data:`CONTEXT_S` at the measured speed, so that a cold prompt stays quick."""
    most = (engine.max_positions - job.max_tokens) // 4
    if job.context_tokens >= 0:
        return min(job.context_tokens, most)
    rate = PROBED_ROWS / engine.planner.costs.prefill_seconds(PROBED_ROWS, CONTEXT_TOKENS)
    affordable = int(CONTEXT_S * rate) // CONTEXT_STEP * CONTEXT_STEP
    return min(affordable, MOST_CONTEXT_TOKENS, most)


def completion_key(job: CompletionJob) -> Key:
    """Return the key by which completions share caches: the document."""
    return ("complete", job.scope, job.path)


def completion_task(job: CompletionJob, prompt: Prompt, index: Any, cancelled: Cancelled) -> Task:
    """Return the text at the cursor."""
    task = new_task(completion_key(job), job, prompt, job.sampling, index, cancelled)
    rule = stopping.completion(job.prefix, one_line=job.single_line, gated=job.gate > 0)
    task.request.stop_rule = stopping.before_other_files(rule, prompt.stop_texts)
    if job.gate > 0:
        watch = GateWatch(job.gate, cancelled)
        task.request.confidences, task.request.cancelled = True, watch.cancelled
        task.request.following = stopping.following(job.suffix)
        task.read = watch.over
    return task
