"""Arrays that begin at a line of the cache, as NumPy's large ones do not."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from operating_system.system import is_macos_on_arm


def line_bytes() -> int:
    """Of a line of this system's caches."""
    return 128 if is_macos_on_arm() else 64


LINE = line_bytes()


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """``np.zeros``, from a line on; memory is taken when it is written."""
    return _aligned(np.zeros(_bytes(shape, dtype), np.uint8), shape, dtype)


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """``np.empty``, from a line on."""
    return _aligned(np.empty(_bytes(shape, dtype), np.uint8), shape, dtype)


def copied(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous copy, from a line on."""
    copy = empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def _bytes(shape: tuple[int, ...], dtype: DTypeLike) -> int:
    return prod(shape) * np.dtype(dtype).itemsize + LINE


def _aligned(buffer: NDArray[np.uint8], shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    first = -buffer.ctypes.data % LINE
    return buffer[first : first + len(buffer) - LINE].view(dtype).reshape(shape)
