"""Levels of instructions: what code is compiled for is one of few, so that code compiled elsewhere
fits.

A process chooses a level by Numba's own settings before Numba is loaded. All that follows from what
the processor has (kernels, layouts, types) follows from these settings, so from the level alone.
Loads no compiler, so that it answers at once.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from accel.native.processor import processor

CPU_NAME, CPU_FEATURES = "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"

_AVX2 = "+sse4.2,+popcnt,+avx,+f16c,+avx2,+fma,+bmi,+bmi2,+lzcnt,+movbe,+cx16"
_VNNI = f"{_AVX2},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+avx512vnni"
_DOTPROD = "+neon,+fp-armv8,+crc,+lse,+rdm,+fullfp16,+rcpc,+dotprod"

_AVX2_FLAGS = "sse4_2 popcnt avx f16c avx2 fma bmi1 bmi2 abm movbe cx16 aes pclmulqdq"
_CLIENT_FLAGS = "adx gfni vaes vpclmulqdq sha_ni avx_vnni"
_VNNI_FLAGS = f"{_AVX2_FLAGS} adx avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni"
_DOTPROD_FLAGS = "fp asimd crc32 atomics asimdrdm fphp asimdhp lrcpc asimddp"


class Level(NamedTuple):
    """A processor by LLVM's name, the features that kernels ask for by LLVM's names, and the flags
    by which Linux says that all are here that LLVM uses for such a processor."""

    cpu: str
    features: str
    flags: frozenset[str]

    @property
    def settings(self) -> dict[str, str]:
        """Numba's settings for it."""
        return {CPU_NAME: self.cpu, CPU_FEATURES: self.features}


X86_LEVELS = {
    "avx512-vnni": Level("cascadelake", _VNNI, frozenset(_VNNI_FLAGS.split())),
    "avx-vnni": Level(
        "alderlake", f"{_AVX2},+avxvnni", frozenset(f"{_AVX2_FLAGS} {_CLIENT_FLAGS}".split())
    ),
    "avx2": Level("haswell", _AVX2, frozenset(_AVX2_FLAGS.split())),
}
"""From the fastest to what laptops have had since 2013."""

ARM_LEVELS = {
    "neon-i8mm": Level(
        "neoverse-n1", f"{_DOTPROD},+i8mm", frozenset(f"{_DOTPROD_FLAGS} i8mm".split())
    ),
    "neon-dotprod": Level("neoverse-n1", _DOTPROD, frozenset(_DOTPROD_FLAGS.split())),
}
"""From the fastest to what phones, servers and Macs have had since 2020."""

LEVELS = X86_LEVELS | ARM_LEVELS

_OF_MACHINES = {"x86_64": X86_LEVELS, **dict.fromkeys(("aarch64", "arm64", "ARM64"), ARM_LEVELS)}
"""As Linux, macOS and Windows call them. An emulated system may be told of flags of another."""


def level_here(described: str = "") -> str | None:
    """Return the name of the fastest level that the processor at hand has, None for other
    processors, and for x86 on other systems than Linux: code is compiled for these as they are.
    described: another one, as ``processor`` describes it."""
    described = described or processor()
    lines = (line.partition(":") for line in described.splitlines())
    features = [rest for name, _, rest in lines if name.strip() in ("flags", "Features")]
    flags = set(" ".join(features).split())
    levels = _OF_MACHINES.get(described.split()[0], {})
    return next((name for name, level in levels.items() if level.flags <= flags), None)


def use_level() -> None:
    """Choose the level of this process and those that it starts, unless the user did. Numba must
    not be loaded yet."""
    if CPU_NAME not in os.environ and CPU_FEATURES not in os.environ:
        level = level_here()
        os.environ |= LEVELS[level].settings if level is not None else {}


def level_in_use() -> str | None:
    """Return the name of the level that was chosen, None where it is none of ``LEVELS``."""
    settings = {name: os.environ.get(name) for name in (CPU_NAME, CPU_FEATURES)}
    return next((name for name, level in LEVELS.items() if level.settings == settings), None)
