"""Planners of drafts as benches need them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from accel.planning.planner import FixedBatchPlanner, Planner


@contextmanager
def frozen(planner: Planner) -> Iterator[None]:
    """Plan requests of a kind alike meanwhile."""
    if not isinstance(planner, FixedBatchPlanner):
        yield
        return
    with patch.object(planner, "_choose", lambda _kind: None):
        yield
