"""torch and transformers, which are an extra: whether they are here. Neither is loaded."""

from __future__ import annotations

import importlib.util

PACKAGES = ("torch", "transformers")
INSTALL = "install it with: pip install 'redraft[torch]'"


def is_installed() -> bool:
    """Return whether torch and transformers are installed."""
    return all(importlib.util.find_spec(name) is not None for name in PACKAGES)
