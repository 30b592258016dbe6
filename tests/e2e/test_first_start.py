"""The first start on a machine: a real engine process with nothing compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "decoding"))

from gguf_models import random_module, save_gguf

from operating_system.machine import cores

ENGINE = """
import json, sys
from numba.core import event

class Compiled(event.Listener):
    def on_start(self, started):
        function = started.data["dispatcher"].py_func
        names.append(f"{function.__module__}.{function.__qualname__}")

    def on_end(self, ended):
        pass

names, told = [], []
event.register("numba:compile", Compiled())
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.engine.service import EngineService
service = EngineService(EngineOptions(path=sys.argv[1]))
service.load(told.append)
service.warm_up()
print(json.dumps({"names": names, "told": told}))
"""


@pytest.mark.skipif(cores() < 2, reason="one core compiles where code is called")
@pytest.mark.timeout(600)
@pytest.mark.long
def test_all_that_takes_long_is_compiled_at_once(tmp_path: Path) -> None:
    """What other processes compile is what the engine calls, in the form in which it does. Then a
    second start compiles nothing at all."""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "compiled"),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }

    sizes = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64}
    model = save_gguf(tmp_path / "m.gguf", random_module("qwen2", **sizes), "Q8_0")

    def start() -> tuple[list[str], list[str]]:
        ended = subprocess.run(
            [sys.executable, "-c", ENGINE, str(model)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        answer = json.loads(ended.stdout.splitlines()[-1])
        ours = ("accel.", "repo_index.")
        return [name for name in answer["names"] if name.startswith(ours)], answer["told"]

    names, told = start()
    assert names == []
    assert told[0].endswith("0 of 6 parts")
    assert start() == ([], [])
