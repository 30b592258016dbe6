"""Processors plainer than the one at hand: code compiled for them finds the same."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from accel.native.cpu_features import first_level
from accel.native.processor import processor

FOLDER = Path(__file__).parent

_HASWELL = "+sse4.2,+popcnt,+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,+cx16"
"""What laptops have had since 2013, many of today among them."""


def features_under(settings: dict[str, str]) -> set[str]:
    code = "from accel.native.cpu_features import FEATURES; print(*FEATURES)"
    found = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | settings,
    )
    return set(found.stdout.split())


def test_what_numba_is_told_counts_as_what_there_is() -> None:
    told = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,-avx512f,+fma"}
    assert features_under(told) == {"avx2", "fma"}
    assert features_under({"NUMBA_CPU_NAME": "generic"}) == set()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="another family")
def test_products_on_a_laptop_without_wide_registers(tmp_path: Path) -> None:
    """The tests of products once more, compiled for such a processor."""
    settings = {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": _HASWELL,
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    tests = [str(FOLDER / name) for name in ("test_matmul.py", "test_lanes.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    found = subprocess.run(
        command, check=False, capture_output=True, text=True, env=os.environ | settings
    )
    assert found.returncode == 0, found.stdout


@pytest.mark.skipif(platform.system() != "Linux", reason="the file is Linux's")
def test_a_processor_is_known_by_its_model_and_features_alone(tmp_path: Path) -> None:
    def told(name: str, flags: str, speed: str) -> str:
        """The first of two processors, as Linux tells of it."""
        first = f"processor\t: 0\nmodel name\t: {name}\ncpu MHz\t\t: {speed}\nflags\t\t: {flags}\n"
        file = tmp_path / f"{name} {flags} {speed}"
        file.write_text(f"{first}\nprocessor\t: 1\n")
        return processor(file)

    before = told("EPYC", "avx2 fma", "2445")
    assert "EPYC" in before
    assert told("EPYC", "avx2 fma", "3100") == before
    assert len({before, told("EPYC", "avx2", "2445"), told("Xeon", "avx2 fma", "2445")}) == 3
    assert processor(tmp_path / "none") == platform.machine()


def test_the_first_level_of_caches_is_what_the_system_says(tmp_path: Path) -> None:
    for place, (level, kind, size) in enumerate(
        [("1", "Instruction", "64K"), ("2", "Unified", "1024K"), ("1", "Data", "32K")]
    ):
        folder = tmp_path / f"index{place}"
        folder.mkdir()
        for name, said in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(f"{said}\n")
    assert first_level(tmp_path) == 32 << 10
    (tmp_path / "index2" / "size").write_text("48\n")
    assert first_level(tmp_path) is None
    (tmp_path / "index2" / "size").unlink()
    assert first_level(tmp_path) is None
