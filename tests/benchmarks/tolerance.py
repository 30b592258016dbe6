"""Methods that may fail without ending a run: a broken peer shall not cost the others' figures."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from tests.benchmarks.methods import PLAIN


class Tolerance:
    """What failed of the methods that may, and why."""

    def __init__(self, may_fail: Collection[str] = ()) -> None:
        """``may_fail``: names of methods. Plain decoding never may: all else is told against it."""
        self._may_fail = frozenset(may_fail) - {PLAIN}
        self.failed: dict[str, str] = {}
        """By method: what it raised, in one line."""

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Note what the method raises within; other methods' errors pass."""
        try:
            yield
        except Exception as error:
            if name not in self._may_fail:
                raise
            message = " ".join(str(error).split()) or "no message"
            self.failed[name] = f"{name} failed ({type(error).__name__}: {message})"

    def left(self, names: Collection[str]) -> list[str]:
        """Those of the names that have not failed."""
        return [name for name in names if name not in self.failed]
