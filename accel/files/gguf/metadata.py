"""Metadata of a GGUF file by key, read as values of the kind that the caller asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accel.errors import BrokenModel

AGAIN = "fetch the file again"
OTHER_TYPE = "take a file in Q8_0, Q4_0 or Q4_K_M"
OTHER_MODEL = "use another model, or run it with llama.cpp"
"""The remedy for a file, as messages give it."""

Value: TypeAlias = "bool | int | float | str | NDArray[Any] | StringArray"

_LENGTH = Struct("<Q")


@dataclass(frozen=True, slots=True)
class StringArray:
    """A list of strings as it is stored: most readers of a header need none of a vocabulary's."""

    count: int
    data: bytes
    """Each string after its length."""

    def decoded(self) -> list[str]:
        """Return the strings. What is not UTF-8 becomes U+FFFD."""
        return [text.decode("utf-8", "replace") for text in self.encoded()]

    def encoded(self) -> list[bytes]:
        """Return the bytes of each string."""
        texts, data, position = [], self.data, 0
        for _ in range(self.count):
            start = position + 8
            position = start + _LENGTH.unpack_from(data, position)[0]
            texts.append(data[start:position])
        return texts


class Metadata:
    """The values of a header. What is asked for and has another kind raises BrokenModel."""

    def __init__(
        self, path: Path, values: dict[str, Value], spans: dict[str, slice] | None = None
    ) -> None:
        """``spans``: where each key and its value are in the file, in bytes."""
        self.path = path
        self.places = spans or {}
        self._values = values

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def value(self, key: str) -> Value | None:
        """Return the value of a file under ``key``, of any kind, None without."""
        return self._values.get(key)

    def text(self, key: str) -> str | None:
        """Return a string, None without."""
        value = self._values.get(key)
        return value if value is None or isinstance(value, str) else self._refuse(key, "a string")

    def flag(self, key: str) -> bool | None:
        """Return a truth value, None without."""
        value = self._values.get(key)
        if value is None or isinstance(value, bool):
            return value
        return self._refuse(key, "true or false")

    def integer(self, key: str, least: int, most: int) -> int | None:
        """Return a whole number of a range, both ends included, None without. A list of one number
        again and again, as some files have it for each layer, is that number."""
        value = self._values.get(key)
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and len(value):
            value = int(value[0]) if (value == value[0]).all() else None
            if value is None:
                self._refuse(key, "the same for all layers")
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        return self._refuse(key, f"a whole number from {least} to {most}")

    def number(self, key: str) -> float | None:
        """Return a finite number, None without."""
        value = self._values.get(key)
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value):
            return float(value)
        return self._refuse(key, "a number")

    def strings(self, key: str) -> StringArray:
        """Return a list of strings as it is stored, empty without. An empty list may be of any
        kind."""
        value = self._values.get(key)
        if value is None or (isinstance(value, np.ndarray) and not len(value)):
            return StringArray(0, b"")
        return value if isinstance(value, StringArray) else self._refuse(key, "a list of strings")

    def numbers(self, key: str) -> NDArray[Any] | None:
        """Return a list of numbers, None without."""
        value = self._values.get(key)
        if value is None or isinstance(value, np.ndarray):
            return value
        return self._refuse(key, "a list of numbers")

    def fingerprint(self, prefix: str) -> str:
        """Return a hash of everything whose key begins so."""
        digest = hashlib.sha256()
        for key in sorted(key for key in self._values if key.startswith(prefix)):
            value = self._values[key]
            if isinstance(value, np.ndarray):
                data = value.tobytes()
            else:
                data = value.data if isinstance(value, StringArray) else repr(value).encode()
            digest.update(f"{key} {type(value).__name__} {len(data)} ".encode())
            digest.update(data)
        return digest.hexdigest()

    def _refuse(self, key: str, kind: str) -> Any:
        raise BrokenModel(f"{self.path}: {key} is not {kind}", AGAIN)
