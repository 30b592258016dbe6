"""Planners of drafts as benches need them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from accel.planning.fixed_batch_planner import FixedBatchPlanner
from accel.planning.planner import Planner


def forget(planner: Planner) -> None:
    """Drop what earlier requests taught, and write nothing to disk from now on."""
    if isinstance(planner, FixedBatchPlanner):
        planner._store = None
        planner._start_from(None)


@contextmanager
def frozen(planner: Planner) -> Iterator[None]:
    """Plan requests of a kind alike meanwhile; what is learnt counts afterwards."""
    if not isinstance(planner, FixedBatchPlanner):
        yield
        return
    with patch.object(planner, "_choose", lambda: None):
        yield
    planner._choose()
