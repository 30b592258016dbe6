"""Tests that need llama-cpp-python are skipped where it is not installed."""

from __future__ import annotations

import importlib.util

from accel.models.llama_cpp.library_files import PACKAGE


def has_package() -> bool:
    """Return whether llama-cpp-python itself is here."""
    return importlib.util.find_spec(PACKAGE) is not None
