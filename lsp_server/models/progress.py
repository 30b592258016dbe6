"""The progress of fetching a model."""

from __future__ import annotations

from collections.abc import Callable

from lsp_server.shared.errors import RedraftError

Report = Callable[[str, int, int], None]
"""Hears what is done ("fetching", "checking", …), and how much of how much: bytes, and parts of
``COMPILING``; a total of 0 is not known. It may raise ``Stopped``, which ends the fetch: what has
come stays for the next one."""

COMPILING = "compiling"
"""What is done while a model is fetched, and after it: parts of what every model calls."""


class Stopped(RedraftError):
    """The user cancelled the download."""


def unheard(_step: str, _done: int, _total: int) -> None:
    """Ignore a report of progress."""
