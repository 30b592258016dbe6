"""What OpenAI's routes have in common: how a text is generated.

What would change the text and cannot be done is refused. Other fields that are not known are passed
over, as clients send fields of many servers.
"""

from __future__ import annotations

import secrets
from typing import Any

from lsp_server.engine.jobs import GenerateJob
from lsp_server.engine.scheduler import COMPLETION, EDIT
from lsp_server.http_server.errors import invalid
from lsp_server.http_server.fields import Fields

MOST_TOKENS = 1 << 16
MOST_SEED = (1 << 63) - 1
MOST_STOPS = 64
MOST_STOP_CHARACTERS = 1024
MOST_LOGPROBS = 20
SHORT_TOKENS = 256
"""Longer answers are as urgent as edits: others go between."""

_CANNOT: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "echo": (False,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "logit_bias": ({},),
    "tools": ([],),
    "functions": ([],),
    "response_format": ({"type": "text"},),
    "grammar": ("",),
    "json_schema": ({},),
    "audio": (),
    "modalities": (["text"],),
}
"""Fields that can have these values alone."""


def refuse_what_cannot_be(fields: Fields) -> None:
    """Raises RequestRefused where something is asked for that is not done."""
    for name, values in _CANNOT.items():
        value = fields.take(name)
        if value is not None and value not in values:
            raise invalid(f"{name} is not supported; leave it out")


def generate_job(fields: Fields, max_tokens: int) -> GenerateJob:
    """How to generate, without the prompt. Raises RequestRefused."""
    refuse_what_cannot_be(fields)
    limit = fields.whole("max_tokens", max_tokens, 1, 1 << 30)
    limit = fields.whole("max_completion_tokens", limit, 1, 1 << 30)
    temperature = fields.number("temperature", 0.0, 0.0, 2.0)
    seed = secrets.randbits(62) if temperature else 0
    return GenerateJob(
        max_tokens=min(limit, MOST_TOKENS),
        temperature=temperature,
        top_k=max(fields.whole("top_k", 0, -1, 1 << 30), 0),
        top_p=fields.number("top_p", 1.0, 1e-6, 1.0),
        seed=fields.whole("seed", seed, -MOST_SEED, MOST_SEED),
        stop=stop_texts(fields),
        prediction=_prediction(fields),
    )


def urgency_of(job: GenerateJob) -> int:
    """Short answers are for somebody who types."""
    return fair_urgency(COMPLETION, job.max_tokens)


def fair_urgency(urgency: int, max_tokens: int) -> int:
    """What is as urgent as a completion has to be as short: others wait until it ends."""
    return urgency if max_tokens <= SHORT_TOKENS else max(urgency, EDIT)


def stop_texts(fields: Fields) -> list[str]:
    """A text, or a list of texts."""
    value = fields.take("stop", [])
    stops = [value] if isinstance(value, str) else value
    if not (isinstance(stops, list) and all(isinstance(stop, str) for stop in stops)):
        raise invalid("stop is a text or a list of texts")
    if len(stops) > MOST_STOPS or any(len(stop) > MOST_STOP_CHARACTERS for stop in stops):
        raise invalid(f"stop has at most {MOST_STOPS} texts of {MOST_STOP_CHARACTERS} characters")
    return [stop for stop in stops if stop]


def text_content(value: Any, where: str) -> str:
    """A text, or a list of parts of which each is a text."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise invalid(f"{where} is a text or a list of parts")
    texts = []
    for part in value:
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if not isinstance(text, str):
            raise invalid(f"{where} has text alone: the model reads nothing else")
        texts.append(text)
    return "".join(texts)


def _prediction(fields: Fields) -> str:
    value = fields.take("prediction")
    if value is None:
        return ""
    if not isinstance(value, dict) or value.get("type") != "content":
        raise invalid('prediction is {"type": "content", "content": …}')
    return text_content(value.get("content"), "prediction.content")
