"""Fields of a generation that all routes share."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from accel.verification.sampling import Sampling
from lsp_server.shared.contract.jobs import (
    COMPLETION,
    EDIT,
    LEAST_TOP_P,
    MOST_SEED,
    MOST_TOKENS,
    GenerateJob,
)
from lsp_server.team.http_server.errors import invalid
from lsp_server.team.http_server.fields import Count, Flag

MOST_LOGPROBS = 20
SHORT_TOKENS = 256
"""Longer answers are as urgent as edits: others go between."""
WHOLE_CONTEXT = 1 << 30
"""More tokens than any context has."""
MOST_JOBS = 128
"""Of a request: its prompts, times the answers to each."""
LLAMA_CPP_LAST_TOKENS = 64
"""How far back ``repeat_penalty`` looks where the request does not say."""

Limit: TypeAlias = Annotated[int, Meta(ge=-2, le=1 << 30)]
Share: TypeAlias = Annotated[float, Meta(ge=0.0, le=1.0)]
Penalty: TypeAlias = Annotated[float, Meta(ge=-100.0, le=100.0)]
Factor: TypeAlias = Annotated[float, Meta(ge=1e-3, le=100.0)]
Choices: TypeAlias = Annotated[int, Meta(ge=1, le=MOST_JOBS)]
Likeliest: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_LOGPROBS)]
Token: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 31)]
Named: TypeAlias = int | Annotated[str, Meta(min_length=1)]
Bias: TypeAlias = bool | Annotated[float, Meta(ge=-1e4, le=1e4)]
Stop: TypeAlias = Annotated[str, Meta(max_length=1024)]
Sampler: TypeAlias = Literal[
    "penalties",
    "dry",
    "top_n_sigma",
    "top_k",
    "typ_p",
    "typical_p",
    "top_p",
    "min_p",
    "xtc",
    "temperature",
    "infill",
]
"""llama.cpp's. Those that are not done have fields of their own, which are refused."""
Content: TypeAlias = str | list[str | dict[str, Any]]
TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Kinds of parts that are texts, and the fields that hold these."""


class Prediction(msgspec.Struct, frozen=True):
    type: Literal["content"]
    content: Content


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool | None = False


class GenerationFields(msgspec.Struct, kw_only=True):
    """The fields of a generation by the names of OpenAI, llama.cpp and vLLM."""

    max_completion_tokens: Limit | None = None
    max_tokens: Limit | None = None
    n_predict: Limit | None = None
    """Tokens at most; 0: the prompt alone, below 0: as many as there is room for."""
    t_max_predict_ms: Count = 0
    n_indent: Annotated[int, Meta(ge=0, le=1 << 16)] = 0
    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] = 0.0
    top_k: Annotated[int, Meta(ge=-1, le=1 << 30)] = 0
    top_p: Share = 1.0
    min_p: Share = 0.0
    presence_penalty: Penalty = 0.0
    frequency_penalty: Penalty = 0.0
    repetition_penalty: Factor = 1.0
    repeat_penalty: Factor = 1.0
    repeat_last_n: Annotated[int, Meta(ge=-1, le=1 << 30)] | None = None
    seed: int = -1
    random_seed: int = -1
    samplers: list[Sampler] | None = None
    logit_bias: (
        Annotated[dict[str, Bias], Meta(max_length=1 << 16)]
        | Annotated[list[tuple[Named, Bias]], Meta(max_length=1 << 16)]
    ) = []
    stop: str | Annotated[list[Stop], Meta(max_length=64)] = []
    stop_token_ids: Token | list[Token] = []
    ignore_eos: Flag = False
    prediction: Prediction | None = None
    n: Choices | None = None
    n_cmpl: Choices | None = None
    best_of: Choices | None = None
    stream: Flag = False
    stream_options: StreamOptions = StreamOptions()
    logprobs: bool | Likeliest = False
    top_logprobs: Likeliest = 0
    response_format: dict[str, Any] = {}
    json_schema: dict[str, Any] = {}

    def job(self, usual_tokens: int) -> GenerateJob:
        """Return how to generate, without the prompt; ``usual_tokens`` at most if the request has
        no limit. Raises RequestRefused."""
        limits = self.max_completion_tokens, self.max_tokens, self.n_predict
        limit = next((limit for limit in limits if limit is not None), usual_tokens)
        tokens = self.stop_token_ids
        stops = [self.stop] if isinstance(self.stop, str) else self.stop
        return GenerateJob(
            max_tokens=MOST_TOKENS if limit < 0 else min(limit, MOST_TOKENS),
            max_seconds=self.t_max_predict_ms / 1000,
            min_indent=self.n_indent,
            sampling=self._sampling(),
            logit_bias=self._biases(),
            stop=[stop for stop in stops if stop],
            stop_tokens=tokens if isinstance(tokens, list) else [tokens],
            ignore_end=bool(self.ignore_eos),
            prediction=text_of(self.prediction.content, "prediction.content")
            if self.prediction
            else "",
            grammar=self._grammar(),
        )

    def _sampling(self) -> Sampling:
        penalty, last_tokens = self._repetition()
        seed = self.seed if self.seed != -1 else self.random_seed
        if abs(seed) > MOST_SEED:
            raise invalid(f"seed is a whole number from -{MOST_SEED} to {MOST_SEED}")
        if seed == -1:
            seed = secrets.randbits(62) if self.temperature else 0
        sampling = Sampling(
            self.temperature,
            top_k=max(self.top_k, 0),
            top_p=max(self.top_p, LEAST_TOP_P),
            min_p=self.min_p,
            repetition_penalty=penalty,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            last_tokens=last_tokens,
            seed=seed,
        )
        if self.samplers is None:
            return sampling
        # llama.cpp's list says which of the rules count.
        neutral: dict[str, Any] = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
        unused = {name: neutral[name] for name in neutral if name not in self.samplers}
        if "penalties" not in self.samplers:
            unused |= {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
        return replace(sampling, **unused)

    def _repetition(self) -> tuple[float, int | None]:
        """Return the repetition penalty, and how many of the last tokens penalties look at: as vLLM
        and transformers have it all of them for ``repetition_penalty``, as llama.cpp has it
        ``repeat_last_n`` for ``repeat_penalty``."""
        by_vllm, by_llama_cpp, last = (
            self.repetition_penalty,
            self.repeat_penalty,
            self.repeat_last_n,
        )
        if by_vllm != 1 and by_llama_cpp not in (1, by_vllm):
            raise invalid("repetition_penalty and repeat_penalty differ; send one of them")
        window: int | None = None
        if last is not None:
            window = last if last >= 0 else WHOLE_CONTEXT
        elif by_llama_cpp != 1 and by_vllm == 1:
            window = LLAMA_CPP_LAST_TOKENS
        return by_llama_cpp if by_vllm == 1 else by_vllm, window

    def _biases(self) -> list[tuple[int | str, float | None]]:
        """Return what is added to scores of tokens, by OpenAI's object of token ids, or llama.cpp's
        pairs of a token id or a text and a number, or false for what is never written."""
        pairs: Any = self.logit_bias
        if isinstance(pairs, dict):
            pairs = [(int(name) if _is_id(name) else name, bias) for name, bias in pairs.items()]
        if any(bias is True for _, bias in pairs):
            raise invalid("logit_bias has a number, or false, for each token")
        return [(named, None if bias is False else float(bias)) for named, bias in pairs]

    def _grammar(self) -> str:
        """Return what the answer has to fit; empty for any text. Raises RequestRefused."""
        kind = self.response_format.get("type", "text")
        if kind == "json_schema":
            named = self.response_format.get("json_schema")
            schema = named.get("schema", {"type": "object"}) if isinstance(named, dict) else None
            schema = self.response_format.get("schema") if schema is None else schema
        elif kind == "json_object":
            schema = self.response_format.get("schema") or {"type": "object"}
        elif kind == "text":
            schema = self.json_schema or {}
        else:
            raise invalid('response_format.type is "text", "json_object" or "json_schema"')
        if not isinstance(schema, dict):
            raise invalid("response_format.json_schema.schema is an object")
        return f"start: {fitting(schema)}" if schema or kind != "text" else ""

    def headers(self, job: GenerateJob) -> dict[str, str]:
        """Return headers of the answer, which say what of the request is not in ``job``."""
        return {}

    @property
    def choices(self) -> int:
        """The number of answers to each prompt. Raises RequestRefused."""
        count = self.n or self.n_cmpl or 1
        if self.best_of not in (None, count):
            raise invalid("best_of has to equal n; ask for n answers with logprobs, and choose")
        return count

    @property
    def likeliest(self) -> int | None:
        """The number of likeliest tokens that are told at each position; None: nothing is. A
        number, as OpenAI's completions have it, or true with ``top_logprobs``, as its chats do."""
        if not isinstance(self.logprobs, bool):
            return max(self.logprobs, self.top_logprobs)
        if self.top_logprobs and not self.logprobs:
            raise invalid("top_logprobs goes with logprobs, which is true then")
        return self.top_logprobs if self.logprobs else None


def batch_of(jobs: Sequence[GenerateJob], choices: int) -> list[GenerateJob]:
    """Return jobs that write ``choices`` answers to each of ``jobs``. Those to one prompt are drawn
    by seeds one after another, so that each is what a request of its own with that seed is
    answered."""
    if len(jobs) * choices > MOST_JOBS:
        raise invalid(f"n answers to each prompt are at most {MOST_JOBS}; send several requests")
    batch = secrets.token_hex(8) if len(jobs) * choices > 1 else ""
    return [
        replace(job, sampling=replace(job.sampling, seed=seed % (MOST_SEED + 1)), batch=batch)
        for job in jobs
        for seed in range(job.sampling.seed, job.sampling.seed + choices)
    ]


def fitting(schema: dict[str, Any]) -> str:
    """Return the expression of a grammar for JSON that fits ``schema``."""
    # Small models would write blanks without end.
    blanks = {"whitespace_pattern": r"[ \n]{0,24}"}
    return f"%json {json.dumps({**schema, 'x-guidance': blanks})}"


def _is_id(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 10


def priority_of(job: GenerateJob) -> int:
    """Return the urgency of ``job``: short answers come first, batches last."""
    return EDIT if job.batch else fair_priority(COMPLETION, job.max_tokens)


def fair_priority(priority: int, max_tokens: int) -> int:
    """Return ``priority``, lowered for a long answer: others would wait until it ends."""
    return priority if max_tokens <= SHORT_TOKENS else max(priority, EDIT)


def text_of(content: Content | None, where: str) -> str:
    """Return a text, or the texts of all parts; nothing is an empty text. Raises RequestRefused."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(_part(piece, where) for piece in content)


def _part(piece: str | dict[str, Any], where: str) -> str:
    if isinstance(piece, str):
        return piece
    kind = piece.get("type")
    text = piece.get(TEXT_PARTS[kind]) if isinstance(kind, str) and kind in TEXT_PARTS else None
    if not isinstance(text, str):
        raise invalid(f"{where} has text alone: the model reads nothing else")
    return text
