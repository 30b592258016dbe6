"""Where drafts come from: one source a file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel.mask_tokens import MaskTokens
    from accel.sources.calibration import Calibration
    from accel.sources.history import History
    from accel.sources.mixture import MixtureDrafter
    from accel.sources.protocol import Drafter
    from accel.sources.sampler import Tables
    from accel.sources.token_shapes import TokenShapes
    from accel.speculator import Speculator
    from accel.tokenizer import Tokenizer


def default_drafter(
    tokenizer: Tokenizer,
    *,
    calibration: Path | None = None,
    history: History | None = None,
    speculator: Speculator | None = None,
) -> MixtureDrafter:
    """The drafter for completions of a model with ``tokenizer``, and ``speculator`` if it has one.

    ``calibration`` is a file of what earlier drafters of this model learnt, see
    ``calibration.file_of``; without it learning starts anew. Save it with
    ``drafter.calibration.save``. ``history`` may be shared by the drafters of one thread. Compiled
    code is loaded by ``mixture.warm_up``.
    """
    from accel.sources.calibration import Calibration

    learnt = Calibration.load(calibration) if calibration else None
    return mixture_drafter(tokenizer, speculator, learnt=learnt, history=history)


def mixture_drafter(
    tokenizer: Tokenizer,
    speculator: Speculator | None,
    *,
    learnt: Calibration | None,
    history: History | None,
) -> MixtureDrafter:
    """``default_drafter`` that goes on learning where ``learnt`` stands."""
    from accel.sources.mixture import MixtureDrafter
    from accel.sources.speculating_mixture import SpeculatingMixture

    shapes = shapes_of(tokenizer)
    if speculator is None:
        return MixtureDrafter(shapes, learnt=learnt, history=history)
    return SpeculatingMixture(speculator, shapes=shapes, learnt=learnt, history=history)


ADAPTIVE_FROM_S = 2e-3
"""Time of a forward of one row from which adaptive tokens pay beside other sources. Below, using
guesses costs more than it brings: with forwards of 0.45 ms Redraft writes 2,855 tokens a second
without and 2,363 with mask rows, though their number is planned. Beside a speculator they do not
pay: with forwards of 2.4 ms it writes 814 tokens a second, and 648 with mask rows in its stead.
"""


def adaptive_pays(mask_tokens: MaskTokens | None, forward_s: float) -> bool:
    """Whether a model has mask tokens that draft in one forward, and a plain forward takes so many
    seconds that they pay."""
    has_sampler = mask_tokens is not None and mask_tokens.sampler is not None
    return has_sampler and forward_s >= ADAPTIVE_FROM_S


def with_adaptive(drafter: Drafter, mask_tokens: MaskTokens | None, forward_s: float) -> Drafter:
    """``drafter`` and the model's mask tokens together where ``adaptive_pays`` and it does not
    speculate, else ``drafter`` alone. ``forward_s``: seconds of a plain forward."""
    if mask_tokens is None or not adaptive_pays(mask_tokens, forward_s):
        return drafter
    from accel.sources.adaptive import AdaptiveDrafter
    from accel.sources.adaptive_mixture import AdaptiveMixture
    from accel.sources.mixture import MixtureDrafter
    from accel.sources.speculating_mixture import SpeculatingMixture

    if isinstance(drafter, SpeculatingMixture):
        return drafter
    if isinstance(drafter, MixtureDrafter):
        return AdaptiveMixture(mask_tokens.count, drafter, _tables_of(mask_tokens))
    return AdaptiveDrafter(mask_tokens, drafter)


@lru_cache(maxsize=1)
def _tables_of(mask_tokens: MaskTokens) -> Tables:
    from accel.sources.sampler import Tables

    return Tables.of(mask_tokens)


@lru_cache(maxsize=4)
def shapes_of(tokenizer: Tokenizer) -> TokenShapes:
    """Shapes of the tokenizer's vocabulary, made once: a second for a large one."""
    from accel.sources.token_shapes import TokenShapes

    return TokenShapes.of(tokenizer.byte_table)
