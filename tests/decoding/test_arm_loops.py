"""Code generated for Arm from the innermost loops of a forward, inspected on x86: vectors alone.
Products with quantised weights: ``test_quantised_tiles``."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from assembly_loops import innermost_loops
from text_cases import data_beside

from accel.native.levels import ARM_LEVELS

DATA = data_beside(__file__)

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="compiles for another processor than this"
)

LOOPS = DATA["LOOPS"]
"""By kernel what its loops are known by, and what the work on sixteen numbers, or on a block, takes
at least of some instructions."""

START = DATA["START"]
FOLDER = Path(__file__).parent

ONE_NUMBER = re.compile(r"^[hsd]\d+,?$")
"""A register with one number."""


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Nothing comes out of a cache, which keeps no assembly."""
    cache = {"NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
    done = subprocess.run(
        [sys.executable, "-c", START, str(FOLDER.parents[1]), str(FOLDER)],
        env=os.environ | ARM_LEVELS["neon-dotprod"].settings | cache,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    actual: dict[str, str] = json.loads(done.stdout)
    assert set(actual) == set(LOOPS)
    return actual


@pytest.mark.parametrize("kernel", LOOPS)
def test_loops_work_on_vectors(kernel: str, assembly: dict[str, str]) -> None:
    known_by, least = LOOPS[kernel]
    loops = [
        loop for loop in innermost_loops(assembly[kernel])
        if known_by in (names := Counter(words[0] for words in loop)) and "bl" not in names
    ]  # fmt: skip
    assert loops, f"{kernel}: no loop with {known_by}"
    counts = [Counter(words[0] for words in loop) for loop in loops]
    assert any(all(count[name] >= n for name, n in least.items()) for count in counts), counts
    for loop in loops:
        alone = [
            words for words in loop
            if words[0][0] == "f" and all(map(ONE_NUMBER.match, words[1:3]))
        ]  # fmt: skip
        # A block has one scale, found once for 32 numbers.
        assert len(alone) <= (4 if kernel == "activations" else 0), alone


def test_no_kernel_calls_a_library_for_a_number(assembly: dict[str, str]) -> None:
    """Half precision and exponentials are computed where they stand."""
    called = {
        words[1]
        for text in assembly.values()
        for words in map(str.split, text.splitlines())
        if words[:1] == ["bl"]
    }
    assert not [name for name in called if re.match(r"__|exp|pow|f?(min|max)|rint|mem", name)]
