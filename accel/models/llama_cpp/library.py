"""The functions of llama.cpp that we use, as llama-cpp-python declares them.

Its package is the table of structure layouts: it is built together with its library. Loads no
model; is imported in the worker's process alone, since an assertion of the library ends a process.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
from collections import deque
from typing import Any

PACKAGE = "llama_cpp"
DISTRIBUTION = "llama-cpp-python"
"""The package's name where packages come from."""
INSTALL = "install it with: pip install 'redraft[llama-cpp]'"


def is_installed() -> bool:
    """Whether the package is here; it is not loaded."""
    return importlib.util.find_spec(PACKAGE) is not None


def load_library() -> Any:
    """The module with the C functions, checked. Raises ImportError or OSError where it cannot be
    loaded, RuntimeError where its layouts are not those of its library."""
    module = importlib.import_module(f"{PACKAGE}.llama_cpp")
    callback = module.llama_log_callback(_note)
    _callbacks.append(callback)
    module.llama_log_set(callback, ctypes.c_void_p(0))
    _check(module)
    module.llama_backend_init()
    return module


def _check(module: Any) -> None:
    """Defaults that the library documents stand where the layout says."""
    params = module.llama_context_default_params()
    found = params.n_ctx, params.n_batch, params.n_ubatch, params.yarn_ext_factor, params.type_k
    if found != (512, 2048, 512, -1.0, 1):
        raise RuntimeError(f"llama.cpp and {PACKAGE} do not fit together: defaults are {found}")


_ERROR = 4
_callbacks: list[Any] = []
"""What the library calls has to stay as long as the process."""
_complaints: deque[str] = deque(maxlen=3)


def _note(level: int, text: bytes, _data: Any) -> None:
    if level == _ERROR and text.strip():
        _complaints.append(text.decode("utf-8", "replace").strip())


def last_complaints() -> str:
    """What the library last said that went wrong, in one line."""
    return " | ".join(_complaints)
