"""Sampling options of a job, with the names of tokens as ids."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from lsp_server.shared.contract.jobs import AnyJob, GenerateJob
from lsp_server.tasks.generating import replace_surrogates

if TYPE_CHECKING:
    from accel.engine import Engine
    from accel.text.prompts import Prompt
    from accel.verification.sampling import Sampling

NEVER = -math.inf


def sampling_of(engine: Engine, job: AnyJob, prompt: Prompt) -> Sampling:
    """How the tokens behind ``prompt`` are chosen. Raises InvalidRequest."""
    if not isinstance(job, GenerateJob):
        return job.sampling
    return replace(job.sampling, logit_bias=_biases(engine, job, prompt))


def _biases(engine: Engine, job: GenerateJob, prompt: Prompt) -> tuple[tuple[int, float], ...]:
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
