"""Each file of each cache, damaged in each way, is made anew."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from seeds import Amount
from text_cases import data_beside

DATA = data_beside(__file__)

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) * 2 // 3],
    "a byte short": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "a byte is another": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "a byte in the middle is another": lambda data: (
        data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 4]) + data[len(data) // 2 + 1 :]
    ),
    "longer": lambda data: data + b"\0" * 100,
    "another's": lambda data: b"PK\x05\x06 no file of ours",
}
_WRITES = DATA["_WRITES"]
_COMPILED = DATA["_COMPILED"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], tuple[str, str]]:
    """Return what a process answers with the caches in a folder, and what it did not find."""
    folder = tmp_path_factory.mktemp("source")
    (folder / "made_here.py").write_text(_COMPILED)
    (folder / "main.py").write_text("\n".join(line[4:] for line in _WRITES.splitlines()))

    def answer(caches: Path) -> tuple[str, str]:
        environment = {**os.environ, "XDG_CACHE_HOME": str(caches)}
        environment["NUMBA_CACHE_DIR"] = str(caches / "machine-code")
        environment["PYTHONPATH"] = os.pathsep.join([str(folder), *sys.path])
        done = subprocess.run(
            [sys.executable, str(folder / "main.py")],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        first, _, second = done.stdout.strip().partition(" ; ")
        return first, second

    return answer


def test_each_file_that_is_damaged_is_made_anew(
    tmp_path: Path, run: Callable[[Path], tuple[str, str]], amount: Amount
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    randoms = random.Random(seed)
    want, _ = run(tmp_path)
    nothing_made = run(tmp_path)
    assert nothing_made == (want, "2")
    files = [path for path in sorted(tmp_path.rglob("*")) if path.is_file() and path.stat().st_size]
    assert {path.suffix for path in files} >= {".nbi", ".nbc", ".npz", ".json"}
    cases = [(file, how) for file in files for how in DAMAGES]
    for file, how in randoms.sample(cases, amount(4, len(cases))):
        data = file.read_bytes()
        file.write_bytes(DAMAGES[how](data))
        answer, made = run(tmp_path)
        assert answer == want, (file.name, how)
        assert made != "2", (file.name, how, "was not noticed")
        assert run(tmp_path) == nothing_made, (file.name, how, "is not whole afterwards")
