"""What the processor at hand can do that compiled code makes use of."""

from __future__ import annotations

import ctypes
import platform

import llvmlite.binding as llvm

_REQUEST_PERMISSION, _TILE_DATA, _ARCH_PRCTL = 0x1023, 18, 158


def _features() -> set[str]:
    try:
        return {name for name, here in llvm.get_host_cpu_features().items() if here}
    except RuntimeError:
        return set()


def _may_use_tiles() -> bool:
    """Ask the kernel for tile registers (AMX), which make a thread's state larger by 8 KB: Linux
    gives them to a process that asks, unless some thread's stack for signals is too small."""
    if not {"amx-tile", "amx-bf16"} <= FEATURES or llvm.llvm_version_info[0] < 16:
        return False
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    system_call = ctypes.CDLL(None).syscall
    return bool(system_call(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0)


FEATURES = _features()
"""As LLVM names them."""

HAS_BF16 = "avx512bf16" in FEATURES and llvm.llvm_version_info[0] >= 16
"""Dot products of pairs of bf16."""

HAS_TILES = _may_use_tiles()
"""Products of tiles of bf16, see ``accel.tiles``."""
