"""Functions of the index in machine code, which a cache on disk keeps."""

from __future__ import annotations

from functools import partial

from numba import njit

compiled = partial(njit, nogil=True, cache=True, no_cfunc_wrapper=True)
"""For functions that Python calls."""

linked = partial(njit, nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=True)
"""For functions that compiled functions alone call: they are part of the code of these."""
