"""Features of this machine's processor that compiled code uses."""

from __future__ import annotations

import llvmlite.binding as llvm
from numba.core import config

from accel.errors import InvalidEnvironment
from operating_system.system import is_macos_on_arm


def check_features() -> None:
    """To be called before anything is compiled: raises ``InvalidEnvironment`` for a setting at
    which LLVM would end the process."""
    named = (config.CPU_FEATURES or "").split(",")
    if wrong := [name for name in named if name and name[0] not in "+-"]:
        raise InvalidEnvironment(
            f"NUMBA_CPU_FEATURES: {wrong[0][:40]} begins with neither + nor -; unset it"
        )


def _features() -> set[str]:
    named: str | None = config.CPU_FEATURES
    if named is not None:
        return {name[1:] for name in named.split(",") if name.startswith("+")}
    try:
        return {name for name, here in llvm.get_host_cpu_features().items() if here}
    except RuntimeError:
        return set()


FEATURES = _features()
"""As LLVM names them."""


def first_level(features: set[str]) -> int:
    """Return bytes of a fast core's first level of caches for data, or fewer: it is part of what is
    compiled, so it follows from the system and from features alone."""
    if "dotprod" in features:
        return (128 if is_macos_on_arm() else 64) << 10
    return (48 if "avxvnni" in features else 32) << 10


FIRST_LEVEL = first_level(FEATURES)
