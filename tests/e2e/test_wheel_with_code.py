"""A wheel that brings compiled code: where nothing was ever compiled, a start compiles nothing."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "decoding"))

from gguf_models import random_module, save_gguf
from python_environments import python_environment

from accel.native.levels import LEVELS, level_here
from accel.native.machine_code import MADE_FOR
from release.machine_code import add_machine_code

ROOT = Path(__file__).resolve().parents[2]
FLAGS = Path("/proc/cpuinfo")
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(level_here() is None, reason="levels are those of Linux on x86"),
]

START = """
import hashlib, json, sys, time
from accel.native.levels import use_level
from accel.native.machine_code import use_cache
use_level()
use_cache()
import numpy as np
from numba.core import event

class Compiled(event.Listener):
    def on_start(self, started):
        function = started.data["dispatcher"].py_func
        names.append(f"{function.__module__}.{function.__qualname__}")

    def on_end(self, ended):
        pass

names, told = [], []
event.register("numba:compile", Compiled())
from accel.models import batch
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.engine.service import EngineService
from accel.execution.forwards import alone

bits = {}
for kv_type in ("f16", "int8"):
    service = EngineService(EngineOptions(path=sys.argv[1], kv_type=kv_type, threads=1))
    service.load(told.append)
    service.warm_up()
    rows = batch.chain_batch(np.arange(40, dtype=np.int32), 0, wants_numbers=True)
    logits = alone(service.engine.forward_steps(rows, service.engine.session()))
    numbers = np.stack([logits.row(row) for row in range(40)])
    bits[kv_type] = hashlib.sha256(numbers.tobytes()).hexdigest()
    service.close()
print(json.dumps({"names": names, "told": told, "bits": bits, "file": batch.__file__}))
"""


def levels_to_force() -> list[str]:
    """Those of which this processor has all."""
    flags: set[str] = set()
    if FLAGS.is_file():
        line = next(line for line in FLAGS.read_text().splitlines() if line.startswith("flags"))
        flags = set(line.split())
    return [name for name, level in LEVELS.items() if level.flags <= flags]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this source with compiled code for every level. What was compiled of the same
    source stays for the next run."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=source, check=True)
    (made,) = folder.glob("*.whl")
    add_machine_code(made, ROOT / "build" / "machine-code")
    return made


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sizes = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64}
    file = tmp_path_factory.mktemp("model") / "m.gguf"
    return save_gguf(file, random_module("qwen2", **sizes), "Q8_0")


def started(python: Path | str, model: Path, **environment: str) -> dict[str, Any]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    done = subprocess.run(
        [python, "-c", START, str(model)], env=plain | environment,
        capture_output=True, text=True, check=False, cwd=model.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    ours = ("accel.", "repo_index.")
    found["names"] = [name for name in found["names"] if name.startswith(ours)]
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def compiled_here(model: Path) -> dict[str, str]:
    """What is computed by code that this checkout compiled where it was called."""
    here = started(sys.executable, model, NUMBA_CACHE_DIR=os.environ["NUMBA_CACHE_DIR"])
    found: dict[str, str] = here["bits"]
    return found


@pytest.mark.parametrize("level", levels_to_force())
def test_a_start_from_the_wheel_compiles_nothing(
    level: str, wheel: Path, model: Path, compiled_here: dict[str, str], tmp_path: Path
) -> None:
    """The same to the last bit as what is compiled here, and nothing is left where it lies."""
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as files:
        files.extractall(installed)
    (archive,) = (installed / "accel" / "native" / "compiled").glob(f"{level}.{MADE_FOR}.*")
    libraries = str(distribution("numba").locate_file(""))
    assert libraries.encode() not in lzma.decompress(archive.read_bytes())
    before = {file for file in installed.rglob("*") if "__pycache__" not in file.parts}
    python = python_environment(tmp_path / "environment", installed)
    homes = {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("CACHE", "DATA", "STATE")}
    found = started(python, model, **homes, **LEVELS[level].settings)
    assert Path(found["file"]).is_relative_to(installed)
    assert found["names"] == []
    assert found["told"] == []
    assert found["bits"] == compiled_here
    assert {file for file in installed.rglob("*") if "__pycache__" not in file.parts} == before
    assert not list(installed.rglob("*.nb[ci]"))


def test_the_wheel_pins_what_reads_its_code(wheel: Path) -> None:
    import numba

    with zipfile.ZipFile(wheel) as files:
        (metadata,) = (name for name in files.namelist() if name.endswith("METADATA"))
        text = files.read(metadata).decode()
        assert files.testzip() is None
    (pinned, other) = (line for line in text.splitlines() if "Requires-Dist: numba" in line)
    assert pinned.startswith(f"Requires-Dist: numba=={numba.__version__}; sys_platform")
    assert other.startswith("Requires-Dist: numba>=")
