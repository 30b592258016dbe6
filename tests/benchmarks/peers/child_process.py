"""An object that lives in a process of its own: what fails there does not end this process, and no
threads of one engine spin beside those of another."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from types import TracebackType
from typing import Any

from tests.benchmarks.peers.errors import PeerUnavailable

_held: Any = None
"""In the child: the object."""


class ChildProcess:
    """Makes an object in a new process and calls its methods there. Everything that goes over is
    pickled, and errors come back as they were raised."""

    def __init__(self, name: str, make: Callable[..., Any], *arguments: Any) -> None:
        """``name``: for messages; ``make``: a function or class of a module. Raises what it raises,
        and PeerUnavailable where the process ends."""
        self.name = name
        self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        try:
            self.pid: int = self._run(_make, make, arguments)
        except BaseException:
            self.close()
            raise

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the object. Raises what it raises, and PeerUnavailable where the process
        ends."""
        return self._run(_call, method, arguments, options)

    def close(self) -> None:
        """End the process."""
        self._pool.shutdown()

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return self._pool.submit(function, *arguments).result()
        except BrokenProcessPool as error:
            raise PeerUnavailable(
                f"the process of {self.name} ended; look above for what it printed"
            ) from error


def _make(make: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    global _held  # noqa: PLW0603 - the one object of this process
    _held = make(*arguments)
    return os.getpid()


def _call(method: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return getattr(_held, method)(*arguments, **options)
