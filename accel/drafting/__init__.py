"""Where drafts come from."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel.drafting.history import History
    from accel.drafting.retrieval.drafter import RetrievalDrafter
    from accel.drafting.retrieval.token_classes import TokenShapes
    from accel.planning.calibration import Calibration
    from accel.text.tokenizer import Tokenizer


def default_drafter(
    tokenizer: Tokenizer, *, calibration: Path | None = None, history: History | None = None
) -> RetrievalDrafter:
    """The drafter for completions of a model with ``tokenizer``.

    ``calibration`` is a file of what earlier drafters of this model learnt, see
    ``calibration.file_of``; without it learning starts anew. Save it with
    ``drafter.calibration.save``. ``history`` may be shared by the drafters of one thread. Compiled
    code is loaded by ``retrieval.drafter.warm_up``.
    """
    from accel.planning.calibration import Calibration

    learnt = Calibration.load(calibration) if calibration else None
    return retrieval_drafter(tokenizer, learnt=learnt, history=history)


def retrieval_drafter(
    tokenizer: Tokenizer, *, learnt: Calibration | None, history: History | None
) -> RetrievalDrafter:
    """``default_drafter`` that goes on learning where ``learnt`` stands."""
    from accel.drafting.retrieval.drafter import RetrievalDrafter

    return RetrievalDrafter(shapes_of(tokenizer), learnt=learnt, history=history)


@lru_cache(maxsize=4)
def shapes_of(tokenizer: Tokenizer) -> TokenShapes:
    """Shapes of the tokenizer's vocabulary, made once: a second for a large one."""
    from accel.drafting.retrieval.token_classes import TokenShapes

    return TokenShapes.of(tokenizer.byte_table)
