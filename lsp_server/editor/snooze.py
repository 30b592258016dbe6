"""Suggestions paused until they are resumed, or snoozed for some minutes."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lsp_server.editor.protocol.capabilities import SNOOZE
from lsp_server.shared.errors import RedraftError

if TYPE_CHECKING:
    from lsp_server.editor.server import RedraftServer

LONGEST_SNOOZE_MINUTES = 24 * 60


def pause(ls: RedraftServer, paused: str) -> None:
    """Pause suggestions, and say ``paused`` in the status; resume them where it is empty."""
    if ls.snooze is not None:
        ls.snooze.cancel()
    ls.paused = paused
    if paused:
        ls.completion.close_all()
    ls.status.changed()


def snooze(ls: RedraftServer, argument: dict[str, Any]) -> None:
    """Run ``redraft.snooze`` with ``{minutes}``: no suggestion until they are over."""
    minutes = argument.get("minutes")
    if not isinstance(minutes, int | float) or not 0 < minutes <= LONGEST_SNOOZE_MINUTES:
        raise RedraftError(f"{SNOOZE} needs the minutes, at most {LONGEST_SNOOZE_MINUTES:,}")
    end = datetime.now() + timedelta(minutes=minutes)
    pause(ls, f"until {end:%H:%M}")
    ls.snooze = asyncio.get_running_loop().call_later(minutes * 60, pause, ls, "")
