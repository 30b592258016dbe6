"""Fields of a generation that all routes share.

``known_fields`` says what of the other fields is refused.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from accel.verification.sampling import Sampling
from lsp_server.shared.contract.jobs import (
    COMPLETION,
    EDIT,
    LEAST_TOP_P,
    MOST_SEED,
    MOST_TOKENS,
    GenerateJob,
)
from lsp_server.team.http_server.errors import RequestRefused, invalid
from lsp_server.team.http_server.fields import Fields

MOST_STOPS = 64
MOST_STOP_CHARACTERS = 1024
MOST_LOGPROBS = 20
SHORT_TOKENS = 256
"""Longer answers are as urgent as edits: others go between."""

SAMPLERS = (
    *("penalties", "dry", "top_n_sigma", "top_k", "typ_p", "typical_p", "top_p", "min_p", "xtc"),
    *("temperature", "infill"),
)
"""llama.cpp's. Those that are not done have fields of their own, which are refused."""
WHOLE_CONTEXT = 1 << 30
"""More tokens than any context has."""
MOST_JOBS = 128
"""Of a request: its prompts, times the answers to each."""
LLAMA_CPP_LAST_TOKENS = 64
"""How far back ``repeat_penalty`` looks where the request does not say."""
MOST_BIAS = 10_000.0
MOST_BIASES = 1 << 16


def generate_job(fields: Fields, max_tokens: int) -> GenerateJob:
    """How to generate, without the prompt. ``max_tokens``: where the request names none. Raises
    RequestRefused."""
    return GenerateJob(
        max_tokens=_limit(fields, max_tokens),
        max_seconds=fields.whole("t_max_predict_ms", 0, 0, 1 << 30) / 1000,
        min_indent=fields.whole("n_indent", 0, 0, 1 << 16),
        sampling=_sampling(fields),
        logit_bias=_logit_bias(fields),
        stop=stop_texts(fields),
        stop_tokens=_stop_tokens(fields),
        ignore_end=fields.flag("ignore_eos"),
        prediction=_prediction(fields),
    )


def _sampling(fields: Fields) -> Sampling:
    temperature = fields.number("temperature", 0.0, 0.0, 2.0)
    repetition_penalty, last_tokens = _repetition(fields)
    sampling = Sampling(
        temperature,
        top_k=max(fields.whole("top_k", 0, -1, 1 << 30), 0),
        top_p=max(fields.number("top_p", 1.0, 0.0, 1.0), LEAST_TOP_P),
        min_p=fields.number("min_p", 0.0, 0.0, 1.0),
        repetition_penalty=repetition_penalty,
        presence_penalty=fields.number("presence_penalty", 0.0, -100.0, 100.0),
        frequency_penalty=fields.number("frequency_penalty", 0.0, -100.0, 100.0),
        last_tokens=last_tokens,
        seed=_seed(fields, temperature),
    )
    return replace(sampling, **_left_out_samplers(fields))


def choices_of(fields: Fields) -> int:
    """How many answers are asked for to each prompt."""
    name = "n" if fields.has("n") else "n_cmpl"
    count = fields.whole(name, 1, 1, MOST_JOBS)
    if fields.whole("best_of", count, 1, MOST_JOBS) != count:
        raise invalid("best_of has to equal n; ask for n answers with logprobs, and choose")
    return count


def batch_of(jobs: Sequence[GenerateJob], choices: int) -> list[GenerateJob]:
    """The jobs that write so many answers to each of some. Those to one prompt are drawn by seeds
    one after another, so that each is what a request of its own with that seed is answered."""
    if len(jobs) * choices > MOST_JOBS:
        raise invalid(f"n answers to each prompt are at most {MOST_JOBS}; send several requests")
    batch = secrets.token_hex(8) if len(jobs) * choices > 1 else ""
    return [
        replace(job, sampling=_of_choice(job.sampling, choice), batch=batch)
        for job in jobs
        for choice in range(choices)
    ]


def _of_choice(sampling: Sampling, choice: int) -> Sampling:
    return replace(sampling, seed=(sampling.seed + choice) % (MOST_SEED + 1))


def _left_out_samplers(fields: Fields) -> dict[str, Any]:
    """llama.cpp's ``samplers`` says which of the rules count; the values of those that do not."""
    names = fields.take("samplers")
    if names is None:
        return {}
    if not (isinstance(names, list) and all(name in SAMPLERS for name in names)):
        raise invalid(f"samplers must be a list of {', '.join(sorted(SAMPLERS))}")
    without = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
    left_out: dict[str, Any] = {name: without[name] for name in without if name not in names}
    if "penalties" not in names:
        left_out |= {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
    return left_out


def _limit(fields: Fields, usual: int) -> int:
    """How many tokens are written at most; below 0: as many as the model has room for."""
    names = "max_completion_tokens", "max_tokens", "n_predict"
    given = [fields.whole(name, usual, -2, 1 << 30) for name in names if fields.has(name)]
    limit = given[0] if given else usual
    return MOST_TOKENS if limit < 0 else min(limit, MOST_TOKENS)


def _seed(fields: Fields, temperature: float) -> int:
    """-1 and none: another text every time."""
    name = "seed" if fields.has("seed") else "random_seed"
    seed = fields.whole(name, -1, -MOST_SEED, MOST_SEED)
    if seed != -1:
        return seed
    return secrets.randbits(62) if temperature else 0


def _repetition(fields: Fields) -> tuple[float, int | None]:
    """The repetition penalty, and how many of the last tokens penalties look at: as vLLM and
    transformers have it all of them for ``repetition_penalty``, as llama.cpp has it
    ``repeat_last_n`` for ``repeat_penalty``."""
    by_vllm = fields.number("repetition_penalty", 1.0, 1e-3, 100.0)
    by_llama_cpp = fields.number("repeat_penalty", 1.0, 1e-3, 100.0)
    last_tokens = fields.whole("repeat_last_n", -1, -1, 1 << 30)
    window = last_tokens if last_tokens >= 0 else None
    if by_vllm != 1 and by_llama_cpp not in (1, by_vllm):
        raise invalid("repetition_penalty and repeat_penalty differ; send one of them")
    if by_llama_cpp != 1 and by_vllm == 1 and not fields.has("repeat_last_n"):
        window = LLAMA_CPP_LAST_TOKENS
    if fields.has("repeat_last_n") and last_tokens < 0:
        window = WHOLE_CONTEXT
    return by_llama_cpp if by_vllm == 1 else by_vllm, window


def _logit_bias(fields: Fields) -> list[tuple[int | str, float | None]]:
    """OpenAI's object of token ids and numbers, or llama.cpp's list of pairs of a token id or a
    text and a number, or false for what is never written."""
    value = fields.take("logit_bias", {})
    if isinstance(value, dict):
        value = [[int(name) if _is_id(name) else name, bias] for name, bias in value.items()]
    if not isinstance(value, list) or len(value) > MOST_BIASES:
        raise _no_bias()
    return [_bias(pair) for pair in value]


def _bias(pair: Any) -> tuple[int | str, float | None]:
    if not (isinstance(pair, list) and len(pair) == 2):
        raise _no_bias()
    named, bias = pair
    if type(named) is not int and not (isinstance(named, str) and named):
        raise _no_bias()
    if bias is False:
        return named, None
    if type(bias) not in (int, float) or not -MOST_BIAS <= bias <= MOST_BIAS:
        raise _no_bias()
    return named, float(bias)


def _is_id(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 10


def _no_bias() -> RequestRefused:
    return invalid(
        f"logit_bias has a number from {-MOST_BIAS:g} to {MOST_BIAS:g}, or false, for each token: "
        'as {"TOKEN": NUMBER} or as [[TOKEN, NUMBER]]'
    )


def _stop_tokens(fields: Fields) -> list[int]:
    value = fields.take("stop_token_ids", [])
    tokens = value if isinstance(value, list) else [value]
    if not all(type(token) is int and 0 <= token < 1 << 31 for token in tokens):
        raise invalid("stop_token_ids must be a list of token ids")
    return tokens


def priority_of(job: GenerateJob) -> int:
    """Short answers are for somebody who types; several at once are not."""
    return EDIT if job.batch else fair_priority(COMPLETION, job.max_tokens)


def fair_priority(priority: int, max_tokens: int) -> int:
    """What is as urgent as a completion has to be as short: others wait until it ends."""
    return priority if max_tokens <= SHORT_TOKENS else max(priority, EDIT)


def wanted_logprobs(fields: Fields) -> int | None:
    """How many of the likeliest tokens are told at each position; None: nothing is. A number, as
    OpenAI's completions have it, or true with ``top_logprobs``, as its chats do."""
    value = fields.take("logprobs", False)
    most = fields.whole("top_logprobs", 0, 0, MOST_LOGPROBS)
    if isinstance(value, bool):
        if most and not value:
            raise invalid("top_logprobs goes with logprobs, which is true then")
        return most if value else None
    return max(fields.whole("logprobs", 0, 0, MOST_LOGPROBS), most)


def stop_texts(fields: Fields) -> list[str]:
    """A text, or a list of texts."""
    value = fields.take("stop", [])
    stops = [value] if isinstance(value, str) else value
    if not (isinstance(stops, list) and all(isinstance(stop, str) for stop in stops)):
        raise invalid("stop must be a text or a list of texts")
    if len(stops) > MOST_STOPS or any(len(stop) > MOST_STOP_CHARACTERS for stop in stops):
        raise invalid(
            f"stop may have at most {MOST_STOPS} texts of {MOST_STOP_CHARACTERS} characters"
        )
    return [stop for stop in stops if stop]


TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Kinds of parts that are texts, and where these are."""


def text_content(value: Any, where: str) -> str:
    """A text, or a list of parts of which each is a text; nothing is an empty text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise invalid(f"{where} is a text or a list of parts")
    return "".join(_text_of(part, where) for part in value)


def _text_of(part: Any, where: str) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, dict) else None
    text = part.get(TEXT_PARTS[kind]) if isinstance(kind, str) and kind in TEXT_PARTS else None
    if not isinstance(text, str):
        raise invalid(f"{where} has text alone: the model reads nothing else")
    return text


def _prediction(fields: Fields) -> str:
    value = fields.take("prediction")
    if value is None:
        return ""
    if not isinstance(value, dict) or value.get("type") != "content":
        raise invalid('prediction is {"type": "content", "content": …}')
    return text_content(value.get("content"), "prediction.content")
