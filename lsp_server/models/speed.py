"""The speed of a model on this machine: as measured, or as its bytes allow."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.learnt_costs import read_costs
from accel.models.costs.profile_store import ProfileStore
from accel.models.fingerprint import fingerprint
from lsp_server.models.card import ModelCard, Speed
from operating_system.files import write_private
from operating_system.folders import cache_folder

Card = TypeVar("Card", bound=ModelCard)

_COPIED_BYTES = 1 << 26
_COPIES = 5
_READ_SHARE = 0.7
"""Of the bandwidth of copies that reading weights comes to."""
PROMPT_TOKENS = 1024
_ROWS_AT_ONCE = 64
_COST_OF_ROWS = 12.0
"""A forward of so many rows takes about so many times as long as one of a single row."""


def rated(card: Card) -> Card:
    """Return the card with the model's speed here; unchanged if the model cannot be opened or its
    size is unknown."""
    if card.problem or not card.nbytes:
        return card
    measured = _measured(card.paths[0]) if card.paths else None
    speed = estimated_speed(card.nbytes) if measured is None else _speed(*measured, measured=True)
    return replace(card, speed=speed)


def estimated_speed(nbytes: int) -> Speed:
    """Return the estimated speed of a model of ``nbytes`` bytes, which need not be here."""
    token_s = nbytes / (_READ_SHARE * bandwidth())
    return _speed(token_s, _COST_OF_ROWS * token_s, measured=False)


def _speed(token_s: float, prompt_s: float, *, measured: bool) -> Speed:
    first = prompt_s * PROMPT_TOKENS / _ROWS_AT_ONCE + token_s
    return Speed(round(first, 4), round(1 / token_s, 1), measured)


def _measured(path: Path) -> tuple[float, float] | None:
    try:
        profiles = ProfileStore(fingerprint(path, "cpu")).values()
    except OSError:  # the file has just gone
        return None
    for _, contexts, rows, seconds in filter(None, map(read_costs, profiles)):
        by_rows = ForwardCosts(contexts, rows, seconds.min(0)).by_rows(PROMPT_TOKENS, _ROWS_AT_ONCE)
        return float(by_rows[1]), float(by_rows[_ROWS_AT_ONCE])
    return None


def bandwidth(anew: bool = False) -> float:
    """Return bytes a second that a core reads and writes here, measured once. ``anew``: it may have
    been measured beside other work, so the best of then and now counts."""
    file = cache_folder() / "bandwidth.json"
    before = 0.0
    with contextlib.suppress(OSError, ValueError, TypeError):
        before = float(json.loads(file.read_text("utf-8")))
    if 0 < before < float("inf") and not anew:
        return before
    source, target = (np.ones(_COPIED_BYTES, np.uint8) for _ in range(2))
    best = float("inf")
    for _ in range(_COPIES):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    best_rate = max(before if before < float("inf") else 0.0, 2 * _COPIED_BYTES / best)
    with contextlib.suppress(OSError):
        write_private(file, json.dumps(best_rate))
    return best_rate
