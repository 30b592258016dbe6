"""Compilation with a disk cache that sees changes in other files: functions that call across files
are compiled with the stamp of all, and an index of an older version counts as empty."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numba import njit, types
from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.typing.typeof import typeof_impl
from numba.experimental import structref
from numba.np.numpy_support import from_dtype, map_layout

from accel.errors import InvalidEnvironment
from accel.native.cpu_features import check_features
from accel.native.link_time import optimise_at_link_time
from accel.native.machine_code import code_folder
from operating_system.file_lock import LockFile
from operating_system.files import read_checked, write_checked

Function = TypeVar("Function", bound=Callable[..., Any])

LONGEST_S = 60.0
"""Longest time of reading or writing an index, in seconds."""

_IMPORT = re.compile(rb"^from ((?:accel|tests)[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)

if config.DISABLE_JIT:
    raise InvalidEnvironment(
        "NUMBA_DISABLE_JIT is set, and Redraft computes by compiled code; unset it"
    )
check_features()
optimise_at_link_time()


@structref.register
class _StateType(types.StructRef):
    """Compiled form of ``State``."""


class State(structref.StructRefProxy):
    """Tuples of many arrays that are handed over to compiled code as one argument: its ``fields``,
    a named tuple."""


structref.define_proxy(State, _StateType, ["fields"])

_typeof_array = typeof_impl.dispatch(np.ndarray)


@typeof_impl.register(np.ndarray)
def _typeof_ndarray(array: Any, context: Any) -> Any:
    # To refuse masked arrays, Numba imports all that computes with them.
    if type(array) is not np.ndarray:
        return _typeof_array(array, context)
    layout, is_readonly = map_layout(array), not array.flags.writeable
    return types.Array(from_dtype(array.dtype), array.ndim, layout, readonly=is_readonly)


class _Index(IndexDataCacheFile):
    """An index that several processes may use at a time, and a version after another: numba numbers
    the forms of a function, and two processes would call theirs the same."""

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any) -> None:
        super().__init__(cache_path, filename_base, source_stamp)
        self._stamp = self._version, source_stamp
        self._lock = Path(cache_path) / "compiled.lock"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While no other process uses the index, on file systems that can tell."""
        lock = LockFile(self._lock)
        with contextlib.suppress(OSError):
            lock.acquire(LONGEST_S)
        try:
            yield
        finally:
            lock.release()

    def save(self, key: Any, data: Any) -> None:
        # On a disk that is full it is compiled for this process alone.
        with contextlib.suppress(OSError), self._alone():
            super().save(key, data)

    def load(self, key: Any) -> Any:
        with self._alone():
            return super().load(key)

    def _load_index(self) -> Any:
        stamp, overloads = self._load_data(self._index_name) or (None, {})
        return overloads if stamp == self._stamp else {}

    def _save_index(self, overloads: Any) -> None:
        self._save_data(self._index_name, (self._stamp, overloads))

    def _load_data(self, name: str) -> Any:
        """Return what a file holds, None where it is damaged: then it is compiled again."""
        content = read_checked(Path(self._data_path(name)))
        # Numba reads the types of all that was compiled before it looks whether that is of use.
        with contextlib.suppress(AttributeError, ImportError, TypeError, pickle.UnpicklingError):
            return content and pickle.loads(content)

    def _save_data(self, name: str, data: Any) -> None:
        write_checked(Path(self._data_path(name)), self._dump(data))


def _load_overload(self: Any, sig: Any, target_context: Any) -> Any:
    # Numba makes ready to compile here, which takes longer than to load what is compiled. That
    # needs the symbols of the runtime alone; whoever compiles makes ready by itself.
    rtsys.initialize(target_context)
    with self._guard_against_spurious_io_errors():
        return self._load_overload(sig, target_context)


FunctionCache.load_overload = _load_overload
"""Of all functions, those of others in this process, too."""


class _Cache(FunctionCache):
    """Of a function, and of the code of the modules that its own imports."""

    def __init__(self, function: Callable[..., Any]) -> None:
        with _in_user_folder():
            super().__init__(function)
        digest = hashlib.sha256()
        for source in _sources_of(function.__module__):
            digest.update(source)
        self._cache_file = _Index(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(self._impl.locator.get_source_stamp(), digest.hexdigest()),
        )


class _LateCache:
    """A cache that is made when it is first asked: most functions are parts of others alone."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._made = cache(partial(_Cache, function))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)


@contextmanager
def _in_user_folder() -> Iterator[None]:
    """Have Numba keep code in the user's cache folder, where the process does not say: in those of
    others, Numba's own functions stay where they would be."""
    before, config.CACHE_DIR = config.CACHE_DIR, config.CACHE_DIR or str(code_folder())
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _sources_of(name: str) -> list[bytes]:
    """Return the digests of a module's file and of those of ours that it imports, and so on: code
    of all of them may be part of what is compiled."""
    digests: dict[str, bytes] = {}
    names_left = [name]
    while names_left:
        if (name := names_left.pop()) not in digests:
            digests[name], imported = _read_module(sys.modules[name])
            names_left += imported
    return [digests[name] for name in sorted(digests)]


@cache
def _read_module(module: ModuleType) -> tuple[bytes, list[str]]:
    """Return the digest of a module's file, and the names of those of ours that it imports."""
    assert module.__file__ is not None
    source = Path(module.__file__).read_bytes()
    names = [
        f"{package.decode()}{name.decode()}"
        for package, listed in _IMPORT.findall(source)
        for name in (b"", *(b"." + word for word in re.findall(rb"\w+", listed)))
    ]
    return hashlib.sha256(source).digest(), [name for name in names if name in sys.modules]


class _Inner(CPUDispatcher):
    def __call__(self, *_arguments: Any) -> Any:
        raise AssertionError(f"{self.py_func.__name__} is for compiled functions alone")


def is_cached(function: Any) -> bool:
    """Return whether a function of ``compiled`` was compiled before, for any arguments."""
    return bool(function._cache._cache_file._load_index())


def index_of(function: Any) -> str:
    """Return the file that lists the compiled forms of a function of ``compiled``."""
    return str(function._cache._cache_file._index_path)


def _have_callers_inline(dispatcher: Any, make_inlined: Callable[[], Any]) -> None:
    """Have compiled callers take in the same function without a form for Python. They share one
    form of it: numba compiles a function once more for every constant that it is called with."""
    inlined = cache(make_inlined)

    def get_call_template(args: Any, kws: Any) -> Any:
        named = {name: types.unliteral(kind) for name, kind in kws.items()}
        return inlined().get_call_template(tuple(map(types.unliteral, args)), named)

    dispatcher.get_call_template = get_call_template
    dispatcher.get_overload = lambda signature: inlined().get_overload(signature)


def compiled(
    *,
    fastmath: bool = False,
    error_model: str = "python",
    forceinline: bool = False,
    borrows: bool = False,
    inner: bool = False,
    callable_from_c: bool = False,
) -> Callable[[Function], Function]:
    """``njit(nogil=True, cache=True)`` whose cache also ends when a module changes that the
    function's own imports.

    ``forceinline``: for functions of many arrays that are called at one place. One that ``borrows``
    makes no array and returns none, so it need not count who refers to them. An ``inner`` one
    cannot be called from Python, and compiles faster. One that is ``callable_from_c`` may be called
    by its address.
    """

    def compile_function(function: Function) -> Function:
        options = {
            "fastmath": fastmath,
            "error_model": error_model,
            "forceinline": forceinline,
            "_nrt": not borrows,
            "no_cfunc_wrapper": not callable_from_c,
        }
        inlined = njit(nogil=True, no_cpython_wrapper=True, **options)
        dispatcher = njit(nogil=True, no_cpython_wrapper=inner, **options)(function)
        dispatcher._cache = _LateCache(function)
        _have_callers_inline(dispatcher, partial(inlined, function))
        if inner:
            dispatcher.__class__ = _Inner
        result: Function = dispatcher
        return result

    return compile_function
