"""What the processor at hand has, and what it can do that compiled code makes use of."""

from __future__ import annotations

from pathlib import Path

import llvmlite.binding as llvm
from numba.core import config

from accel.errors import InvalidEnvironment
from accel.native.processor import permits_tiles


def _features() -> set[str]:
    named: str | None = config.CPU_FEATURES
    if named is not None:
        # LLVM ends the process for others.
        if wrong := [name for name in named.split(",") if name and name[0] not in "+-"]:
            raise InvalidEnvironment(
                f"NUMBA_CPU_FEATURES: {wrong[0][:40]} begins with neither + nor -; unset it"
            )
        return {name[1:] for name in named.split(",") if name.startswith("+")}
    try:
        return {name for name, here in llvm.get_host_cpu_features().items() if here}
    except RuntimeError:
        return set()


def first_level(caches: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int | None:
    """Bytes of a core's first level of caches for data, None where the system does not say."""
    for cache in caches.glob("index*"):
        try:
            level, kind, size = (
                (cache / name).read_text().strip() for name in ("level", "type", "size")
            )
        except OSError:
            continue
        if (level, kind) == ("1", "Data") and size.endswith("K") and size[:-1].isdigit():
            return int(size[:-1]) << 10
    return None


FEATURES = _features()
"""As LLVM names them."""

HAS_BF16 = "avx512bf16" in FEATURES and llvm.llvm_version_info[0] >= 16
"""Dot products of pairs of bf16."""

HAS_TILES = (
    {"amx-tile", "amx-bf16"} <= FEATURES and llvm.llvm_version_info[0] >= 16 and permits_tiles()
)
"""Products of tiles of bf16, see ``accel.models.cpu.amx``."""

FIRST_LEVEL = first_level() or 48 << 10
"""Bytes of a core's first level of caches for data."""
