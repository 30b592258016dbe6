"""What is known of a model's forwards, so that no test hangs on how fast they are just now."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from small_model import SMALL_MODEL

from accel.decoding.engine import Engine
from accel.models.costs.first_costs import CONTEXTS, ROWS
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.learnt_costs import LearntCosts
from accel.models.costs.profile_store import ProfileStore
from accel.models.fingerprint import fingerprint

DTYPE, THREADS = "fp32", 1
COSTS = ForwardCosts([*CONTEXTS], [*ROWS], 2e-3 + 16e-6 * np.array([ROWS] * len(CONTEXTS)))
"""Drafts pay, and a prompt of a thousand tokens takes less than 0.1 s."""


def keep_costs(model: Path = SMALL_MODEL) -> None:
    """As if a model had been measured in :data:`DTYPE` with so many threads: who loads it so plans
    with :data:`COSTS`."""
    store = ProfileStore(fingerprint(model, "cpu"))
    store.put(f"costs/{DTYPE}/f16/{THREADS}", LearntCosts(COSTS).to_json())


def hold_costs(engines: Iterable[Engine]) -> None:
    """Have engines of this process go on planning with the costs they began with, whatever their
    forwards take."""
    for engine in engines:
        assert engine.model.learnt is not None
        engine.model.learnt.note = lambda *_: None  # type: ignore[method-assign]
