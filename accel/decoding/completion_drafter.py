"""The drafter for completions of an engine."""

from __future__ import annotations

from accel.decoding.engine import Engine
from accel.drafting import default_drafter
from accel.drafting.adaptive import AdaptiveDrafter
from accel.drafting.base import Drafter
from accel.drafting.history import History
from accel.drafting.sdsat import SdsatDrafter


def drafter_of(engine: Engine, *, history: History | None = None) -> Drafter:
    """Return the drafter for completions of an engine: ``default_drafter``, and the adaptive tokens
    of its model beside it or in its place, as ``engine.adaptive_tokens`` says."""
    tokens, use = engine.model.adaptive_tokens, engine.adaptive_tokens
    if tokens and use == "two-step":
        return SdsatDrafter(engine)
    retrieval = default_drafter(engine.tokenizer, history=history)
    return AdaptiveDrafter(retrieval, tokens) if tokens and use == "auto" else retrieval
