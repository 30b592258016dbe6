"""Where drafts come from."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel.drafting.base import Drafter
    from accel.drafting.history import History
    from accel.drafting.retrieval.calibration import Calibration
    from accel.drafting.retrieval.drafter import RetrievalDrafter
    from accel.drafting.retrieval.token_classes import TokenShapes
    from accel.engine import Engine
    from accel.text.tokenizer import Tokenizer


def default_drafter(
    tokenizer: Tokenizer, *, calibration: Calibration | None = None, history: History | None = None
) -> RetrievalDrafter:
    """The drafter for completions of a model with ``tokenizer``.

    ``calibration``: that of earlier drafters of this model; without it learning starts anew.
    ``history`` may be shared by the drafters of one thread. Compiled code is loaded by
    ``retrieval.drafter.warm_up``.
    """
    from accel.drafting.retrieval.drafter import RetrievalDrafter

    return RetrievalDrafter(shapes_of(tokenizer), calibration=calibration, history=history)


def drafter_of(
    engine: Engine, *, calibration: Calibration | None = None, history: History | None = None
) -> Drafter:
    """The drafter for completions of an engine: ``default_drafter``, and the adaptive tokens of its
    model beside it or in its place, as ``engine.adaptive_tokens`` says."""
    from accel.drafting.adaptive import AdaptiveDrafter
    from accel.drafting.sdsat import SdsatDrafter

    tokens, use = engine.model.adaptive_tokens, engine.adaptive_tokens
    if tokens and use == "two-step":
        return SdsatDrafter(engine)
    retrieval = default_drafter(engine.tokenizer, calibration=calibration, history=history)
    return AdaptiveDrafter(retrieval, tokens) if tokens and use == "auto" else retrieval


@lru_cache(maxsize=4)
def shapes_of(tokenizer: Tokenizer) -> TokenShapes:
    """Shapes of the tokenizer's vocabulary, made once: a second for a large one."""
    from accel.drafting.retrieval.token_classes import TokenShapes

    return TokenShapes(
        **tokenizer.kept("shapes", lambda: TokenShapes.of(tokenizer.byte_table)._asdict())
    )
