"""Drafters for completions."""

from __future__ import annotations

from accel.decoding.engine import Engine
from accel.drafting import default_drafter
from accel.drafting.adaptive import AdaptiveDrafter
from accel.drafting.base import Drafter
from accel.drafting.history import History
from accel.drafting.retrieval.calibration import Calibration


def drafter_of(
    engine: Engine, *, calibration: Calibration | None = None, history: History | None = None
) -> Drafter:
    """Return the drafter for completions of ``engine``: ``default_drafter``, with the adaptive
    tokens of its model beside it unless ``engine.adaptive_tokens`` is off."""
    tokens, use = engine.model.adaptive_tokens, engine.adaptive_tokens
    retrieval = default_drafter(engine.tokenizer, calibration=calibration, history=history)
    return AdaptiveDrafter(retrieval, tokens) if tokens and use == "auto" else retrieval
