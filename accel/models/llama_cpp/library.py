"""The functions of llama.cpp that we use, in the library that ``places`` finds.

Loads no model; is loaded in the worker's process alone, since an assertion of the library ends a
process.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections import deque
from pathlib import Path
from typing import Any

from accel.models.llama_cpp.devices import Device
from accel.models.llama_cpp.layouts import CONTEXT_LAYOUTS, HEADER, MODEL_LAYOUTS, TYPES, fitting
from accel.models.llama_cpp.library_files import LibraryFile, find_library

_HANDLE, _TEXT = ctypes.c_void_p, ctypes.c_char_p

_GPU, _INTEGRATED_GPU = 1, 2
_OF_VERSIONS = "llama_version", "ggml_version", "ggml_commit"
_GGML_NAMES = "ggml.dll", "ggml-base.dll"


class LibraryRefused(Exception):
    """A library that is missing, cannot be loaded, or is laid out in a way that we do not know."""


class Library:
    """A loaded library. Functions are attributes by their names in llama.h."""

    def __init__(self, file: LibraryFile) -> None:
        """Load and check it. Raises LibraryRefused."""
        self.file = file
        self._loaded = _load(file.path)
        for name, (result, *arguments) in HEADER["functions"].items():
            types = tuple(TYPES[kind] for kind in arguments)
            setattr(self, name, self._function(name, TYPES[result], types))
        self._note = ctypes.CFUNCTYPE(None, ctypes.c_int32, _TEXT, _HANDLE)(_note)
        self.llama_log_set(self._note, None)
        self._check()
        self.llama_backend_init()
        for folder in (file.path.parent, file.path.parent.parent / "bin"):
            if not self.ggml_backend_dev_count():
                self.ggml_backend_load_all_from_path(os.fsencode(folder))
        if not self.ggml_backend_dev_count():
            self.ggml_backend_load_all()

    def __getattr__(self, name: str) -> Any:
        # Functions are set when they were found: what is not there is our own mistake.
        raise AttributeError(name)

    @property
    def layout(self) -> str:
        """Builds from which on its structures are laid out as they are."""
        return f"contexts of {self._context_layout.since}, models of {self._model_layout.since}"

    @property
    def version(self) -> str:
        """Return the library's own words for its build."""
        numbers = [
            self._function(name, _TEXT, ())().decode("utf-8", "replace")
            for name in _OF_VERSIONS
            if self._find(name) is not None
        ]
        return " ".join(numbers) or "of unknown version"

    @property
    def devices(self) -> list[Device]:
        """Return the devices that it computes on."""
        numbers = range(self.ggml_backend_dev_count())
        return [self._device(self.ggml_backend_dev_get(number)) for number in numbers]

    def _device(self, handle: int) -> Device:
        words = self.ggml_backend_dev_name, self.ggml_backend_dev_description
        name, description = (word(handle).decode("utf-8", "replace").strip() for word in words)
        kind, free, total = self.ggml_backend_dev_type(handle), ctypes.c_size_t(), ctypes.c_size_t()
        self.ggml_backend_dev_memory(handle, ctypes.byref(free), ctypes.byref(total))
        is_gpu, is_integrated = kind in (_GPU, _INTEGRATED_GPU), kind == _INTEGRATED_GPU
        return Device(name, description, is_gpu, is_integrated, free.value)

    def _check(self) -> None:
        make_context, make_model = "llama_context_default_params", "llama_model_default_params"
        context = fitting(
            CONTEXT_LAYOUTS, lambda layout: self._function(make_context, layout, ())()
        )
        model = fitting(MODEL_LAYOUTS, lambda layout: self._function(make_model, layout, ())())
        if context is None or model is None:
            what = make_context if context is None else make_model
            raise LibraryRefused(
                f"{self.file.path} is a llama.cpp whose {what} is laid out in a way unknown here"
            )
        self._context_layout, self._model_layout = context, model
        self.context_params = self._function(make_context, context.structure, ())
        self.model_params = self._function(make_model, model.structure, ())
        """Structures with the library's defaults."""
        self.llama_init_from_model = self._function(
            "llama_init_from_model", _HANDLE, (_HANDLE, context.structure)
        )
        self.llama_model_load_from_file = self._function(
            "llama_model_load_from_file", _HANDLE, (_TEXT, model.structure)
        )

    def _function(self, name: str, result: Any, arguments: tuple[Any, ...]) -> Any:
        address = self._find(name)
        if address is None:
            raise LibraryRefused(f"{self.file.path} lacks {name}")
        return ctypes.CFUNCTYPE(result, *arguments)(address)

    def _find(self, name: str) -> int | None:
        for each in self._loaded:
            try:
                return ctypes.cast(getattr(each, name), ctypes.c_void_p).value
            except AttributeError:
                continue
        return None


def load_library() -> Library:
    """Return the library of this machine, checked. Raises LibraryRefused."""
    try:
        file = find_library()
    except FileNotFoundError as error:
        raise LibraryRefused(str(error)) from error
    if file is None:
        raise LibraryRefused("llama.cpp is not installed")
    return Library(file)


def _load(path: Path) -> list[ctypes.CDLL]:
    beside = [path.parent / name for name in _GGML_NAMES]
    try:
        return [ctypes.CDLL(str(path)), *(ctypes.CDLL(str(e)) for e in beside if e.is_file())]
    except OSError as error:
        raise LibraryRefused(f"{path} cannot be loaded: {error}") from error


_ERROR = 4
_FLASH_ATTENTION = re.compile(rb"Flash Attention\b.*\b(enabled|disabled)")
_complaints: deque[str] = deque(maxlen=3)
_flash_attention: deque[bool] = deque(maxlen=1)


def _note(level: int, text: bytes, _data: Any) -> None:
    if level == _ERROR and text.strip():
        _complaints.append(text.decode("utf-8", "replace").strip())
    elif match := _FLASH_ATTENTION.search(text):
        _flash_attention.append(match[1] == b"enabled")


def chosen_flash_attention() -> bool | None:
    """Return whether the last context that left flash attention to the library has it; None where
    the library did not say."""
    return _flash_attention[0] if _flash_attention else None


def last_complaints() -> str:
    """Return the last errors that the library printed, in one line."""
    return " | ".join(_complaints)
