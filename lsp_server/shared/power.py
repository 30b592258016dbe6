"""Decides by ``redraft.power`` and the battery whether something runs ahead of a pause."""

from __future__ import annotations

import time
from functools import lru_cache

from operating_system.machine import on_battery

LOOK_EVERY_S = 10.0


def saving_reason(power: str) -> str:
    """Return why nothing runs ahead with the setting ``power``; empty where it may."""
    if power == "low":
        return "redraft.power is low"
    is_saved = power == "auto" and _was_on_battery(int(time.monotonic() / LOOK_EVERY_S))
    return "on battery" if is_saved else ""


@lru_cache(maxsize=1)
def _was_on_battery(moment: int) -> bool:
    """Return ``on_battery``, asked once a ``moment``."""
    return on_battery()
