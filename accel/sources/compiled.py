"""Compilation with a disk cache that sees changes in other files.

Numba keeps compiled code as long as the file of the function is the same, whatever becomes of the
functions that it calls in other files. After an upgrade that changes just those, old machine code
would run on new arrays. Functions that call across files are compiled with the stamp of all, and an
index of compiled code that names classes of an older version counts as empty.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from numba import njit, types
from numba.core.caching import IndexDataCacheFile

from accel.processor import HAS_TILES

Function = TypeVar("Function", bound=Callable[..., Any])

_PERMITTED = ".tiles" if HAS_TILES else ""
"""Numba knows what the processor has, but not what the kernel permits: compiled code of its own."""


class FieldsType(types.StructRef):
    """Compiled form of a ``structref``: many arrays that are handed over as one argument."""

    def preprocess_fields(self, fields: Any) -> Any:
        """Types of values, where a constant would have its own."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class _Index(IndexDataCacheFile):
    """Numba reads the types of all that was compiled before it looks whether that is of use."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (AttributeError, ImportError, EOFError, TypeError, pickle.UnpicklingError):
            return {}


def _with_those_they_use(modules: tuple[ModuleType, ...]) -> list[ModuleType]:
    """These, and the modules of ours that they hold to give them to ``compiled_with``, and so on:
    code of all of them may be part of what is compiled."""
    found: dict[str, ModuleType] = {}
    left = list(modules)
    while left:
        module = left.pop()
        if module.__name__ not in found:
            found[module.__name__] = module
            held = (value for value in vars(module).values() if isinstance(value, ModuleType))
            left += [each for each in held if each.__name__.startswith("accel.")]
    return [found[name] for name in sorted(found)]


@cache
def _digest_of(module: ModuleType) -> bytes:
    assert module.__file__ is not None
    return hashlib.sha256(Path(module.__file__).read_bytes()).digest()


def compiled_with(
    *modules: ModuleType,
    fastmath: bool = False,
    error_model: str = "python",
    forceinline: bool = False,
    borrows: bool = False,
) -> Callable[[Function], Function]:
    """``njit(nogil=True, cache=True)`` whose cache also ends when one of ``modules`` changes, or of
    those that they use.

    ``forceinline`` for functions of many arrays that others call at one place: handing them over
    takes longer than what is done with them, and more code. One that ``borrows`` makes no array and
    returns none but to others that borrow, so it need not count who refers to them: to count is to
    write where no cache has been for some time, and all that is read waits for it.
    """
    digest = hashlib.sha256()
    for module in _with_those_they_use(modules):
        digest.update(_digest_of(module))

    def compile_function(function: Function) -> Function:
        options = {
            "fastmath": fastmath,
            "error_model": error_model,
            "forceinline": forceinline,
            "_nrt": not borrows,
        }
        dispatcher = njit(nogil=True, cache=True, **options)(function)
        kept = dispatcher._cache
        stamp = kept._cache_file._source_stamp, digest.hexdigest()
        kept._cache_file = _Index(
            cache_path=kept._cache_path,
            filename_base=kept._impl.filename_base + _PERMITTED,
            source_stamp=stamp,
        )
        compiled: Function = dispatcher
        return compiled

    return compile_function
