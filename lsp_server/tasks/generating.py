"""Turns jobs into prompts for the engine, and what the engine wrote into results."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsp_server.shared.contract.jobs import (
    CompletionJob,
    ContextSnippet,
    EditJob,
    GenerateJob,
    JobResult,
    Span,
)
from lsp_server.shared.contract.prompt_length import MOST_TOKENS, PromptLength
from lsp_server.shared.errors import NothingToContinue
from lsp_server.tasks.completion import stopping
from lsp_server.tasks.editing.answers import code_of_answer
from lsp_server.tasks.editing.indentation import with_end_of, with_indentation_of, with_start_of
from lsp_server.tasks.editing.pieces import split_at_definitions
from lsp_server.tasks.editing.shown_text import ShownText, readable
from lsp_server.tasks.editing.splice import spliced
from lsp_server.tasks.spans import SpanBuilder
from lsp_server.tasks.steps import Steps
from lsp_server.text.documents.document import line_end, split_lines

if TYPE_CHECKING:
    from accel.decoding import Generation
    from accel.engine import Engine
    from accel.text.prompts import Beginning, Prompt

OnSpans = Callable[[list[Span]], None]

CONTEXT_TOKENS = 1024
"""This file's part of a prompt where no time is given for it."""
CONTEXT_S = 0.06
"""Time that text of other files may add to a cold prompt; a warm one has it in its KV cache."""
MOST_CONTEXT_TOKENS = 1024
CONTEXT_STEP = 64
LONGEST_ANSWER = 2
ANSWER_TOKENS = 256
"""An answer longer than so many times its prompt, and so many tokens more, has lost its way."""
CUT = ("cancelled", "length", "loop", "broken")
"""How an answer ended that is not whole."""
_ADDED = (
    *("tokens", "forwards", "seconds", "prefill_seconds"),
    *("prompt_tokens", "prompt_tokens_reused"),
)
"""What the pieces of an edit cost together is the sum of what each cost."""
PROBED_ROWS = 128
"""Rows of the forward from whose time the speed of a prefill is taken."""


def prompt_length(engine: Engine) -> PromptLength:
    """How long a prompt of a completion this model computes in how much time."""
    most = min(engine.longest_prompt, MOST_TOKENS)
    return PromptLength.measured(engine.planner.prefill_seconds, engine.prefill_rows, most)


class Budget(NamedTuple):
    """Tokens of a prompt, and of other files in it."""

    prompt: int
    others: int


def completion_budget(engine: Engine, job: CompletionJob, length: PromptLength) -> Budget:
    """How many tokens the prompt of a completion may have."""
    others = _context_tokens(engine, job)
    whole = CONTEXT_TOKENS + others
    if job.prompt_seconds:
        whole = length.tokens(job.prompt_seconds)
        others = min(others, whole // 4)
    return Budget(min(engine.max_positions - job.max_tokens - 1, whole), others)


def completion_prompt(
    engine: Engine, job: CompletionJob, snippets: list[ContextSnippet], budget: Budget
) -> Prompt:
    """The prompt of a completion, with text of other files. Raises NothingToContinue or AccelError
    (``accel.errors``)."""
    from accel.text.prompts import fim_prompt

    prompt = fim_prompt(
        engine.tokenizer,
        replace_surrogates(job.prefix),
        replace_surrogates(job.suffix),
        path=job.path,
        repository=replace_surrogates(job.repository),
        snippets=_readable(snippets),
        budget=budget.prompt,
        snippet_budget=budget.others,
        suffix_budget=engine.suffix_budget,
        order=engine.fim_order,
    )
    if not len(prompt.tokens):
        raise NothingToContinue("there is no text to go on from; write the first words")
    return prompt


def completion_beginning(
    engine: Engine, job: CompletionJob, snippets: list[ContextSnippet], budget: Budget
) -> Beginning:
    """What the prompts of a document begin with that was opened just now."""
    from accel.text.prompts import fim_beginning

    return fim_beginning(
        engine.tokenizer,
        replace_surrogates(job.prefix),
        path=job.path,
        repository=replace_surrogates(job.repository),
        snippets=_readable(snippets),
        budget=budget.prompt,
        snippet_budget=budget.others,
        order=engine.fim_order,
    )


def _readable(snippets: list[ContextSnippet]) -> list[ContextSnippet]:
    return [ContextSnippet(one.path, replace_surrogates(one.text)) for one in snippets]


def _context_tokens(engine: Engine, job: CompletionJob) -> int:
    """Tokens of other files in the prompt of a job: what was asked for, or what is computed in
    :data:`CONTEXT_S` at the measured speed, so that a cold prompt stays quick."""
    most = (engine.max_positions - job.max_tokens) // 4
    if job.context_tokens >= 0:
        return min(job.context_tokens, most)
    rate = PROBED_ROWS / engine.planner.prefill_seconds(PROBED_ROWS, CONTEXT_TOKENS)
    affordable = int(CONTEXT_S * rate) // CONTEXT_STEP * CONTEXT_STEP
    return min(affordable, MOST_CONTEXT_TOKENS, most)


def shown_job(engine: Engine, job: EditJob) -> tuple[ShownText, EditJob]:
    """What the model reads of an edit, and the edit with that in place of the text itself."""
    from accel.text.legible import legible_to

    tokenizer = engine.tokenizer
    shown = ShownText(job.selection, job.instruction, legible=legible_to(tokenizer))
    return shown, replace(
        job,
        selection=shown.text,
        instruction=shown.instruction,
        before=readable(job.before),
        after=readable(job.after),
    )


def put_in(shown: ShownText, job: EditJob, result: JobResult) -> JobResult:
    """The result with the answer put into the text that the user selected; an answer that was cut
    stays as it is. Raises EditRefused where the answer does not fit."""
    if result.stopped_by not in CUT:
        around = [*split_lines(job.before), *split_lines(job.selection), *split_lines(job.after)]
        end = next((found for line in around if (found := line_end(line))), "\n")
        tabs = any(line.startswith("\t") for line in around)
        return replace(result, text=spliced(shown, result.text, end, tabs))
    return result


class EditPart(NamedTuple):
    """A piece of a selection; without a prompt it stays as it is."""

    text: str
    prompt: Prompt | None


def edit_parts(engine: Engine, job: EditJob, fits: Callable[[str], bool]) -> Iterator[EditPart]:
    """What the model is asked for one after another, and what stays between. Raises AccelError. A
    selection that does not fit into one answer is cut at its definitions."""
    for piece in split_at_definitions(job.selection, fits):
        yield EditPart(piece, edit_prompt(engine, replace(job, selection=piece)))


def edit_prompt(engine: Engine, job: EditJob) -> Prompt:
    """The prompt of an edit. Raises AccelError."""
    from accel.text.prompts import edit_prompt as prompt_of

    return prompt_of(
        engine.tokenizer,
        replace_surrogates(job.instruction),
        replace_surrogates(job.selection),
        before=replace_surrogates(job.before),
        after=replace_surrogates(job.after),
        language=job.language,
        path=job.path,
        budget=engine.max_positions // 2,
    )


def answer_tokens(engine: Engine, job: EditJob, prompt: Prompt) -> int:
    """How many tokens an answer may have before it is cut."""
    left = engine.max_positions - len(prompt.tokens) - 1
    longest = LONGEST_ANSWER * len(prompt.tokens) + ANSWER_TOKENS
    return min(job.max_tokens, left, longest)


def generation_prompt(engine: Engine, job: GenerateJob, length: PromptLength) -> Prompt:
    """The prompt of a generation. Raises AccelError."""
    from accel.errors import InvalidRequest
    from accel.text.chat import conversation_tokens
    from accel.text.prompts import Prompt, fim_prompt

    tokenizer = engine.tokenizer
    if job.text is not None and job.suffix is not None:
        budget = max(engine.max_positions - job.max_tokens - 1, engine.max_positions // 2)
        if job.prompt_seconds:
            budget = min(budget, length.tokens(job.prompt_seconds))
        prompt = fim_prompt(
            tokenizer,
            replace_surrogates(job.text),
            replace_surrogates(job.suffix),
            path=job.path,
            snippets=_readable(job.snippets),
            budget=budget,
            suffix_budget=engine.suffix_budget,
            order=engine.fim_order,
        )
    else:
        if job.messages is not None:
            tokens = conversation_tokens(
                tokenizer, [(role, replace_surrogates(text)) for role, text in job.messages]
            )
        elif job.pieces is not None:
            pieces = [(replace_surrogates(text), is_users) for text, is_users in job.pieces]
            if any(is_users and tokenizer.names_control(text) for text, is_users in pieces):
                raise InvalidRequest("the text holds names of the model's control tokens")
            tokens = tokenizer.opened(tokenizer.encode_with_controls(pieces))
        elif job.tokens is not None:
            if not all(0 <= token < engine.model.vocabulary_size for token in job.tokens):
                raise InvalidRequest("a token of the prompt is none of the model's; send text")
            tokens = np.array(job.tokens, np.int32)
        else:
            tokens = tokenizer.encode_prompt(replace_surrogates(job.text or ""))
        prompt = Prompt(tokens, tokenizer.special_tokens)
    if not len(prompt.tokens):
        raise InvalidRequest("the prompt is empty; give some text")
    if job.prediction:
        prompt.original_tokens = tokenizer.encode(replace_surrogates(job.prediction))
    return prompt


def generation_end(job: GenerateJob) -> stopping.StopRule | None:
    """Where the text of a generation is cut."""
    rules = [stopping.strings(job.stop)] if job.stop else []
    if job.min_indent:
        rules.append(stopping.less_indented(job.min_indent))
    if job.max_seconds:
        rules.append(stopping.line_end_after(job.max_seconds, time.perf_counter))
    return stopping.first_of(rules)


def result_of(generation: Generation, builder: SpanBuilder) -> JobResult:
    """A finished generation as a result."""
    statistics = generation.statistics
    return JobResult(
        text=generation.text,
        spans=builder.cut(len(generation.text)),
        tokens=statistics.tokens,
        forwards=statistics.forwards,
        seconds=statistics.decode_s,
        prefill_seconds=statistics.prefill_s,
        sources=dict(statistics.sources),
        stopped_by=generation.stopped_by,
        prompt_tokens=statistics.prompt_tokens,
        prompt_tokens_reused=statistics.prompt_tokens_reused,
    )


def answer(result: JobResult, prompt: Prompt, job: EditJob, original: str) -> JobResult:
    """The code of an answer about ``original``, a piece of the job's selection, ending as that
    does. Raises EditRefused where the code is not clear."""
    if result.stopped_by in CUT:
        return result
    if prompt.fence:
        code = code_of_answer(
            result.text,
            original,
            opening=f"{prompt.fence}{job.language}",
            language=job.language,
            instruction=job.instruction,
        )
        result = replace(result, text=code)
    return fitted(result, original)


def fitted(result: JobResult, original: str) -> JobResult:
    """The code of an answer with the blank lines and the indentation of the original."""
    whole = with_start_of(original, with_end_of(original, result.text))
    return replace(result, text=with_indentation_of(original, whole))


def joined(results: list[JobResult]) -> JobResult:
    """The answers for the pieces of a selection as one."""
    return JobResult(
        text="".join(result.text for result in results),
        spans=[span for result in results for span in result.spans],
        sources=dict(sum((Counter(result.sources) for result in results), Counter())),
        stopped_by=results[-1].stopped_by,
        **{name: sum(getattr(result, name) for result in results) for name in _ADDED},
    )


def replace_surrogates(text: str) -> str:
    """``text`` without lone surrogates, which no tokenizer takes."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def finished(steps: Steps, on_spans: OnSpans | None) -> JobResult:
    """Run alone to the end; ``on_spans`` gets what every step brought."""
    from accel.forwards import told

    work = told(steps)
    while True:
        try:
            spans = next(work)
        except StopIteration as end:
            result: JobResult = end.value
            return result
        if on_spans is not None:
            on_spans(spans)
