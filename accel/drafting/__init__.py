"""Sources of drafts."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel.drafting.history import History
    from accel.drafting.retrieval.drafter import RetrievalDrafter
    from accel.drafting.retrieval.token_classes import TokenShapes
    from accel.text.tokenizer import Tokenizer


def default_drafter(tokenizer: Tokenizer, *, history: History | None = None) -> RetrievalDrafter:
    """Return the drafter for completions of a model with ``tokenizer``.

    ``history`` may be shared by the drafters of one thread. Compiled code is loaded by
    ``retrieval.drafter.warm_up``.
    """
    from accel.drafting.retrieval.drafter import RetrievalDrafter

    return RetrievalDrafter(shapes_of(tokenizer), history=history)


@lru_cache(maxsize=4)
def shapes_of(tokenizer: Tokenizer) -> TokenShapes:
    """Shapes of the tokenizer's vocabulary, made once: a second for a large one."""
    from accel.drafting.retrieval.token_classes import TokenShapes

    return TokenShapes(
        **tokenizer.kept("shapes", lambda: TokenShapes.of(tokenizer.byte_table)._asdict())
    )
