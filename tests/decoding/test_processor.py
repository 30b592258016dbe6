"""Processors plainer than the one at hand: code compiled for them finds the same."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from accel.native.levels import CPU_FEATURES, LEVELS, X86_LEVELS
from accel.native.processor import processor

FOLDER = Path(__file__).parent

_AVX512 = ",+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"
PROCESSORS = {
    "ivybridge": "+sse4.2,+popcnt,+avx,+f16c",
    "skylake-avx512": LEVELS["avx2"].features + _AVX512,
    **{level.cpu: level.features for level in X86_LEVELS.values()},
}
"""Those of the levels, and others, by LLVM's names, and the features that kernels ask for. Without
F16C, which those before ivybridge lack, numbers of 16 bits are not computed."""
FEATURES_HERE = {name for name, here in llvm.get_host_cpu_features().items() if here}
TESTS = ("test_matmul.py", "test_lanes.py", "test_quantised_products.py",
         "test_quantised_tiles.py", "test_sums.py")  # fmt: skip


def features_under(settings: dict[str, str]) -> set[str]:
    code = "from accel.native.cpu_features import FEATURES; print(*FEATURES)"
    actual = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != CPU_FEATURES} | settings,
    )
    return set(actual.stdout.split())


def test_what_numba_is_told_counts_as_what_there_is() -> None:
    told = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,-avx512f,+fma"}
    assert features_under(told) == {"avx2", "fma"}
    assert features_under({"NUMBA_CPU_NAME": "generic"}) == set()


def missing_here(level: str) -> set[str]:
    """Return the features of a level that this processor lacks."""
    return {name[1:] for name in PROCESSORS[level].split(",")} - FEATURES_HERE


def run_held_to(level: str, cache: Path, *tests: str) -> str:
    """Return pytest's output of tests that are compiled for a processor of a level."""
    settings = {
        "NUMBA_CPU_NAME": level,
        "NUMBA_CPU_FEATURES": PROCESSORS[level],
        "NUMBA_CACHE_DIR": str(cache),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "1800"]
    actual = subprocess.run(
        [*command, *(str(FOLDER / name) for name in tests)],
        check=False, capture_output=True, text=True, env=os.environ | settings,
    )  # fmt: skip
    assert actual.returncode == 0, actual.stdout
    return actual.stdout


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="another family")
@pytest.mark.long
@pytest.mark.parametrize("level", PROCESSORS)
def test_kernels_of_every_level_that_this_processor_can_be_held_to(
    level: str, tmp_path: Path
) -> None:
    """The tests of products once more, compiled for such a processor."""
    if missing := missing_here(level):
        pytest.skip(f"this processor has no {', '.join(sorted(missing))}")
    said = run_held_to(level, tmp_path, *TESTS)
    print(level, said.strip().splitlines()[-1])


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="another family")
def test_a_level_has_those_kernels_alone() -> None:
    """The control: held to a level, no kernel of a later one is chosen."""
    code = "from accel.models.cpu.quantised.instruction_sets import here; print(here()[0])"
    chosen = {}
    for level, features in PROCESSORS.items():
        if not missing_here(level):
            settings = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": features}
            ran = subprocess.run(
                [sys.executable, "-c", code], check=True, capture_output=True, text=True,
                env=os.environ | settings,
            )  # fmt: skip
            chosen[level] = ran.stdout.strip()
    expected = {
        "ivybridge": "portable",
        "haswell": "avx2",
        "alderlake": "avx-vnni",
        "skylake-avx512": "avx2",
        "cascadelake": "avx512-vnni",
        "cooperlake": "avx512-vnni",
        "sapphirerapids": "avx512-vnni",
    }
    assert chosen == {level: expected[level] for level in chosen}
    assert "ivybridge" in chosen


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
