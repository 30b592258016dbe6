"""Waiting for what comes when it comes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = float(os.environ.get("REDRAFT_PATIENCE") or 1)
"""How many times longer than on a machine that does nothing else everything may take."""

Value = TypeVar("Value")


def wait_for(probe: Callable[[], Value], what: str, timeout_s: float = 60.0) -> Value:
    """The first true value of ``probe``. Raises AssertionError after the timeout."""
    timeout_s *= PATIENCE
    end = time.monotonic() + timeout_s
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"no {what} within {timeout_s:.0f} s; last seen: {value!r}")
        time.sleep(0.02)
