"""The progress of fetching a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsp_server.shared.errors import RedraftError

Report = Callable[[str, int, int], None]
"""Hears what is done ("fetching", "checking", …), and how much of how much: bytes, and parts of
``COMPILING``; a total of 0 is not known. It may raise ``Stopped``, which ends the fetch: what has
come stays for the next one."""

COMPILING = "compiling"
"""What is done while a model is fetched, and behind it: parts of what every model calls."""


class Stopped(RedraftError):
    """Somebody does not want to wait any longer."""


def unheard(_step: str, _done: int, _total: int) -> None:
    """A report that nobody hears."""


def bar_for(report: Report) -> Any:
    """A class in the place of tqdm's, of which ``huggingface_hub`` makes its progress bars."""

    class _Bar:
        def __init__(self, *, total: int | None = None, initial: int = 0, **_: Any) -> None:
            self._total = total or 0
            self._done = initial
            self.update(0)

        def __enter__(self) -> _Bar:
            return self

        def __exit__(self, *_error: object) -> None:
            self.close()

        def update(self, count: float = 1) -> None:
            self._done += int(count)
            report("fetching", self._done, self._total)

        def close(self) -> None:
            pass

    return _Bar
