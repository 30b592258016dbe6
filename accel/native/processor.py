"""The processor at hand as the system describes it, and what decides which code is compiled for it.
Loads no compiler, so that it answers at once."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from operating_system.system import is_linux, is_macos

INSTRUCTIONS = "REDRAFT_INSTRUCTIONS"
"""The environment variable that names other instructions than the fastest."""

_SETTINGS = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", INSTRUCTIONS)
_LINES = {
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
}
"""Those of Linux that stay the same, on x86 and on Arm."""


@cache
def processor(file: Path = Path("/proc/cpuinfo")) -> str:
    """The first processor: its model and its features, in the words of the system."""
    import platform
    import subprocess

    if is_linux():
        first = file.read_text("utf-8", "replace").split("\n\n")[0] if file.is_file() else ""
        lines = [line for line in first.splitlines() if line.split(":")[0].strip() in _LINES]
        return "\n".join([platform.machine(), *lines])
    if is_macos():
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        return f"{platform.machine()} {answer.stdout.strip()}"
    return f"{platform.machine()} {platform.processor()}"


def compiled_for() -> list[str]:
    """What decides which code is compiled: the processor, and settings."""
    return [processor(), *(f"{name}={os.environ.get(name, '')}" for name in _SETTINGS)]
