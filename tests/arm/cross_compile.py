"""Compiles for Arm, on x86, what a first start of this checkout calls: for each level the folder
that is named gets the cache that Numba reads there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from accel.native.levels import ARM_LEVELS
from accel.native.machine_code import unpack
from release.machine_code import compile_levels

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Compile what is not there."""
    folder = Path(sys.argv[1])
    compile_levels(ROOT, folder / "archives", list(ARM_LEVELS))
    for name, level in ARM_LEVELS.items():
        os.environ |= level.settings
        unpack(folder / name, folder / "archives", ROOT)


if __name__ == "__main__":
    main()
