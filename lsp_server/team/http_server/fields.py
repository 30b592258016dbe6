"""Checks the values of a request: unknown names, wrong types and wild numbers are refused."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from lsp_server.team.http_server.errors import invalid

T = TypeVar("T", str, bool, int, float)

_WORDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}
_REQUIRED: Any = object()


class Fields:
    """A JSON object whose values are taken one by one."""

    def __init__(self, values: dict[str, Any], where: str = "") -> None:
        """``where``: what the object is, for messages."""
        self._values = values
        self._where = f"{where}." if where else ""
        self._taken: set[str] = set()

    def text(self, name: str, default: str = _REQUIRED) -> str:
        """A text. Raises RequestRefused, as all of these do."""
        return self._of(str, name, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """A truth value; 0 and 1 are some, too."""
        value = self.take(name, default)
        if isinstance(value, int | float) and value in (0, 1):
            return bool(value)
        return self._of(bool, name, default)

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number between two others. 16.0 is one."""
        value = self._of(int, name, default)
        if not low <= value <= high:
            raise invalid(f"{self._where}{name} is a whole number from {low} to {high}")
        return value

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """A number between two others."""
        value = self._of(float, name, default)
        if not (math.isfinite(value) and low <= value <= high):
            raise invalid(f"{self._where}{name} is a number from {low:g} to {high:g}")
        return value

    def take(self, name: str, default: Any = None) -> Any:
        """A value of any type; null counts as none."""
        self._taken.add(name)
        value = self._values.get(name)
        return default if value is None else value

    def has(self, name: str) -> bool:
        """Whether there is a value that is not null."""
        return self._values.get(name) is not None

    def objects(self, name: str, most: int) -> list[Fields]:
        """A list of so many objects at most."""
        values = self.take(name, [])
        if isinstance(values, list) and len(values) > most:
            raise invalid(f"{self._where}{name} may have at most {most} entries")
        if not (isinstance(values, list) and all(isinstance(one, dict) for one in values)):
            raise invalid(f"{self._where}{name} is a list of objects")
        return [Fields(one, f"{self._where}{name}") for one in values]

    def object(self, name: str) -> Fields:
        """An object."""
        value = self.take(name)
        if not isinstance(value, dict):
            raise invalid(f"{self._where}{name} is an object")
        return Fields(value, f"{self._where}{name}")

    def left(self) -> list[str]:
        """Names of values that nobody has taken."""
        return sorted(set(self._values) - self._taken)

    def end(self) -> None:
        """All was taken: whatever else is there is refused."""
        if left := self.left():
            raise invalid(f"{self._where}{left[0][:60]} is not known here")

    def _of(self, kind: type[T], name: str, default: T) -> T:
        value = self.take(name, default)
        if value is _REQUIRED:
            raise invalid(f"{self._where}{name} is missing")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if kind is float and is_number:
            return kind(_bounded(value))
        if kind is int and isinstance(value, float) and value.is_integer():
            return kind(value)
        if not isinstance(value, kind) or (kind is int and not is_number):
            raise invalid(f"{self._where}{name} is {_WORDS[kind]}")
        return value


def _bounded(value: float) -> float:
    """Whole numbers in JSON may be larger than any float."""
    return math.inf if isinstance(value, int) and abs(value) > 1 << 64 else value
