"""Tab alone: what a person sees is taken, one after another, until nothing is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from waiting import wait_for

FIRST_S = 8.0
"""So long a person waits for what follows from what was typed."""
NEXT_S = 3.0
"""So long for what comes after one that was taken."""
MOST_TABS = 40


def carry_on_by_tabs(look: Callable[[], tuple[Any, Any]], press_tab: Callable[[], None]) -> int:
    """Press Tab as long as there is anything that it could take, as a person does; how often.

    ``look``: what stands on the screen that the key could take, false for nothing, and all else
    that shows whether something happened.
    """
    patience_s = FIRST_S
    for tabs in range(MOST_TABS):
        try:
            wait_for(lambda: look()[0], "something to take", patience_s)
        except AssertionError:
            return tabs
        before = look()
        if not before[0]:
            continue
        press_tab()
        wait_for(lambda before=before: look() != before, "anything after Tab", 10)  # type: ignore[misc]
        patience_s = NEXT_S
    raise AssertionError(f"something to take comes without end: {look()}")
