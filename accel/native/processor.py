"""The processor at hand as the system describes it, and what decides which code is compiled for it.
Loads no compiler, so that it answers at once."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from operating_system import macos
from operating_system.system import is_linux, is_macos

INSTRUCTIONS = "REDRAFT_INSTRUCTIONS"
"""The environment variable that names other instructions than the fastest."""

_SETTINGS = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", INSTRUCTIONS)
_LINES = {
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
}
"""Those of Linux that stay the same, on x86 and on Arm."""

_WITH_DOT_PRODUCTS = "fp asimd crc32 atomics asimdrdm fphp asimdhp lrcpc asimddp"
"""Features of Macs and machines for Windows with dot products of bytes, in Linux's words."""

_DOT_PRODUCTS, _I8MM = 43, 66
"""Windows's numbers: PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE, PF_ARM_V82_I8MM_INSTRUCTIONS_AVAILABLE.
A Windows older than the second says no."""


@cache
def processor(file: Path = Path("/proc/cpuinfo")) -> str:
    """Return the first processor: its machine, its model and its features, in the words of the
    system; features of Arm in Linux's, on every system."""
    import platform

    if is_linux():
        first = file.read_text("utf-8", "replace").split("\n\n")[0] if file.is_file() else ""
        lines = [line for line in first.splitlines() if line.split(":")[0].strip() in _LINES]
        return "\n".join([platform.machine(), *lines])
    if is_macos():
        model, has_products, has_i8mm = _asked_of_macos()
    else:
        model = platform.processor()
        has_products, has_i8mm = map(_windows_has, (_DOT_PRODUCTS, _I8MM))
    described = f"{platform.machine()} {model}"
    if not has_products:
        return described
    return f"{described}\nFeatures: {_WITH_DOT_PRODUCTS}{' i8mm' if has_i8mm else ''}"


def _asked_of_macos() -> tuple[str, bool, bool]:
    """Return the model, and whether it has dot products and i8mm. Where a name is not known
    (Intel's have none of them, nor has macOS 11) the others are answered."""
    model = "machdep.cpu.brand_string"
    features = [f"hw.optional.arm.FEAT_{name}" for name in ("DotProd", "I8MM")]
    answers = macos.asked(model, *features)
    has_products, has_i8mm = (answers.get(name) == "1" for name in features)
    return answers.get(model, ""), has_products, has_i8mm


def _windows_has(feature: int) -> bool:
    """Return whether Windows on Arm reports ``feature`` to a Python that is not emulated there."""
    import ctypes
    import sysconfig

    if sysconfig.get_platform() != "win-arm64":
        return False
    return bool(ctypes.__dict__["windll"].kernel32.IsProcessorFeaturePresent(feature))


def compiled_for() -> list[str]:
    """Return the processor and the settings that decide about the code that is compiled."""
    return [processor(), *(f"{name}={os.environ.get(name, '')}" for name in _SETTINGS)]
