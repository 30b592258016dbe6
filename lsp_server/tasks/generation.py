"""A generation as a task: it goes on from a prompt as that is given."""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lsp_server.shared.contract.jobs import GenerateJob
from lsp_server.shared.contract.prompt_length import PromptLength
from lsp_server.tasks.completion import stopping
from lsp_server.tasks.completion.task import readable_snippets
from lsp_server.tasks.steps import Steps
from lsp_server.tasks.task import COMPLETION_NODES, EDIT_NODES, Cancelled, Task, new_task
from lsp_server.text.surrogates import replace_surrogates

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.text.prompts import Prompt

WINDOW_NODES = 256
"""A window of a file that is rewritten as a whole is verified in one forward, where that pays."""
PREDICTED_CHARACTERS = 8
"""Of a prediction for each token that a text may have at most."""
NEVER = -math.inf
"""Added to the score of a token that is never written."""


def generation_task(
    engine: Engine, job: GenerateJob, length: PromptLength, index: Any, cancelled: Cancelled
) -> Task:
    """Return the task that continues a prompt, drafted as an edit of the prediction where there is
    one. Raises AccelError."""
    prompt = generation_prompt(engine, job, length)
    predicted = prompt.original_tokens
    edit_nodes = EDIT_NODES if job.rewrites is None else WINDOW_NODES
    nodes = COMPLETION_NODES if predicted is None else edit_nodes
    sampling = replace(job.sampling, logit_bias=_biases(engine, job, prompt))
    key = "generate", job.scope, job.path
    task = new_task(key, job, prompt, sampling, index, cancelled, nodes)
    task.copies = predicted is not None
    request = task.request
    room = max(engine.max_positions - len(prompt.tokens) - 1, 1)
    request.max_tokens = min(job.max_tokens, room)
    request.stop_tokens |= frozenset(job.stop_tokens)
    request.stop_rule = _end(job)
    if job.grammar:
        from accel.verification.grammar import Grammar

        ends = engine.end_tokens | request.stop_tokens
        request.grammar = Grammar(engine.tokenizer, ends, job.grammar)
    request.logprobs, request.confidences = job.logprobs, job.likely
    if job.rewrites is not None and request.draft_request is not None:
        request.draft_request.rewrites = tuple((old, new) for old, new in job.rewrites)
    if job.suffix is not None and _is_cut(engine, job, prompt):
        task.read = _with_cut_prompt
    if predicted is not None:
        task.read = partial(_with_prediction, task, len(predicted))
    return task


def _with_prediction(task: Task, count: int, steps: Steps) -> Steps:
    """Run the steps of ``task``; their result counts the tokens of the prediction, of ``count``,
    that are in the text."""
    result = yield from steps
    accepted = min(result.sources.get("original" if task.copies else "suffix", 0), count)
    return replace(result, prediction_tokens=count, prediction_accepted=accepted)


def _with_cut_prompt(steps: Steps) -> Steps:
    result = yield from steps
    return replace(result, is_prompt_cut=True)


def _is_cut(engine: Engine, job: GenerateJob, prompt: Prompt) -> bool:
    """Return True if some of the text of ``job`` is not in its prompt."""
    plain = [token for token in prompt.tokens if token not in engine.tokenizer.special_tokens]
    held = len(engine.tokenizer.decode(np.array(plain, np.int32)))
    names = sum(len(snippet.path) for snippet in job.snippets)
    sent = sum(map(len, [job.text or "", job.suffix or "", *[s.text for s in job.snippets]]))
    return held + len(prompt.required_prefix) < sent + names


def generation_prompt(engine: Engine, job: GenerateJob, length: PromptLength) -> Prompt:
    """Return the prompt of a generation. Raises AccelError."""
    _check_length(engine, job)
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
            snippets=readable_snippets(job.snippets),
            budget=budget,
            suffix_budget=engine.suffix_budget,
        )
    else:
        if job.messages is not None:
            tokens = conversation_tokens(
                tokenizer,
                _whole_characters(_as_objects(job.messages)),
                job.template_values,
                _whole_characters(job.tools),
                thinks=job.thinks,
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
    if not len(prompt.tokens) and job.max_tokens:
        raise InvalidRequest("the prompt is empty; give some text")
    if job.prediction:
        # What is longer than any text may be helps no draft.
        prediction = job.prediction[: PREDICTED_CHARACTERS * engine.max_positions]
        prompt.original_tokens = tokenizer.encode(replace_surrogates(prediction))
    return prompt


def _as_objects(messages: Sequence[Any]) -> list[dict[str, Any]]:
    return [
        each if isinstance(each, dict) else {"role": each[0], "content": each[1]}
        for each in messages
    ]


def _texts_of(job: GenerateJob) -> list[str]:
    """Return the texts of the messages of ``job``, and what it says of tools."""
    further = [json.dumps(job.tools)] if job.tools else []
    return [str(each["content"]) for each in _as_objects(job.messages or ())] + further


def _whole_characters(value: Any) -> Any:
    """Return JSON without lone surrogates in its texts."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [_whole_characters(each) for each in value]
    if isinstance(value, dict):
        return {replace_surrogates(name): _whole_characters(each) for name, each in value.items()}
    return value


def _check_length(engine: Engine, job: GenerateJob) -> None:
    """Raise PromptTooLong for a prompt that is far too long, before it is cut into tokens."""
    from accel.errors import PromptTooLong
    from accel.text.token_counts import tokens_beyond

    most, least = engine.max_positions, len(job.tokens or ())
    if job.suffix is None and least <= most:
        texts = _texts_of(job) + [text for text, _ in job.pieces or ()]
        texts = [replace_surrogates(text) for text in (job.text or "", *texts)]
        least = tokens_beyond(engine.tokenizer, texts, most)
    if least > most:
        raise PromptTooLong(
            f"the prompt has more than {least} tokens and this model's maximum context length is "
            f"{most} tokens; shorten it"
        )


def characters_of(job: GenerateJob) -> int:
    """Return about how many characters a job has to tokenise."""
    texts = [job.text or "", job.suffix or "", job.prediction]
    texts += _texts_of(job) + [text for text, _ in job.pieces or ()]
    texts += [snippet.text for snippet in job.snippets]
    return sum(map(len, texts)) + 4 * len(job.tokens or ()) + 64 * len(job.logit_bias)


def _end(job: GenerateJob) -> stopping.StopRule | None:
    """Return the rule that cuts the text."""
    rules = [stopping.strings(job.stop)] if job.stop else []
    if job.min_indent:
        rules.append(stopping.less_indented(job.min_indent))
    if job.max_seconds:
        rules.append(stopping.line_end_after(job.max_seconds, time.perf_counter))
    return stopping.first_of(rules)


def _biases(engine: Engine, job: GenerateJob, prompt: Prompt) -> tuple[tuple[int, float], ...]:
    """Return the biases of tokens that the job names by id or text."""
    from accel.errors import InvalidRequest

    biases: defaultdict[int, float] = defaultdict(float)
    for named, bias in job.logit_bias:
        for token in _tokens_of(engine, named):
            if not 0 <= token < engine.model.vocabulary_size:
                raise InvalidRequest(
                    f"logit_bias names the token {token}; the model has tokens 0 to "
                    f"{engine.model.vocabulary_size - 1}"
                )
            biases[token] += NEVER if bias is None else bias
    if job.ignore_end:
        ends = (engine.end_tokens | prompt.stop_tokens) - set(job.stop_tokens)
        biases.update(dict.fromkeys(ends, NEVER))
    return tuple(sorted(biases.items()))


def _tokens_of(engine: Engine, named: int | str) -> set[int]:
    if isinstance(named, int):
        return {named}
    return set(engine.tokenizer.encode(replace_surrogates(named)).tolist())
