"""The speed of a model on this machine: as measured, or as its bytes allow."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from platformdirs import user_cache_path

from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.profile_store import ProfileStore
from accel.models.fingerprint import fingerprint

_COPIED_BYTES = 1 << 26
_COPIES = 5
_READ_SHARE = 0.7
"""Of the bandwidth of copies that reading weights comes to."""
PROMPT_TOKENS = 1024
_ROWS_AT_ONCE = 64
_COST_OF_ROWS = 12.0
"""A forward of so many rows takes about so many times as long as one of a single row."""


@dataclass(frozen=True, slots=True)
class Speed:
    """first_text_s: seconds from a prompt of ``PROMPT_TOKENS`` to the first token; tokens_per_s: of
    plain decoding; measured: whether both were, and not estimated."""

    first_text_s: float
    tokens_per_s: float
    measured: bool


def speed_of(path: Path, nbytes: int) -> Speed | None:
    """The speed of a model here; None where nothing is known of its size."""
    if not nbytes:
        return None
    found = _measured(path)
    return estimated_speed(nbytes) if found is None else _speed(*found, measured=True)


def estimated_speed(nbytes: int) -> Speed:
    """The speed of a model of so many bytes, which need not be here."""
    one = nbytes / (_READ_SHARE * bandwidth())
    return _speed(one, _COST_OF_ROWS * one, measured=False)


def _speed(one: float, many: float, *, measured: bool) -> Speed:
    first = many * PROMPT_TOKENS / _ROWS_AT_ONCE + one
    return Speed(round(first, 4), round(1 / one, 1), measured)


def _measured(path: Path) -> tuple[float, float] | None:
    """Seconds of a forward of one row and of ``_ROWS_AT_ONCE``, where the engine measured them."""
    try:
        kept = ProfileStore(fingerprint(path, "cpu")).values()
    except OSError:  # the file has just gone
        return None
    for costs in kept:
        try:
            rows = ForwardCosts.from_json(costs).by_rows(PROMPT_TOKENS, _ROWS_AT_ONCE)
        except (TypeError, KeyError, ValueError):
            continue
        return float(rows[1]), float(rows[_ROWS_AT_ONCE])
    return None


def bandwidth(anew: bool = False) -> float:
    """Bytes a second that a core reads and writes here, measured once. ``anew``: it may have been
    measured beside other work, so the best of then and now counts."""
    file = user_cache_path("redraft") / "bandwidth.json"
    before = 0.0
    with contextlib.suppress(OSError, ValueError, TypeError):
        before = float(json.loads(file.read_text("utf-8")))
    if before and not anew:
        return before
    source, target = (np.ones(_COPIED_BYTES, np.uint8) for _ in range(2))
    best = float("inf")
    for _ in range(_COPIES):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    found = max(before, 2 * _COPIED_BYTES / best)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found), encoding="utf-8")
    except OSError:
        return found
    return found
