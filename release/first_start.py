"""``python -m release first-start WHEEL --model FILE``: how long a first start takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

_START = """
import json, sys, time
began, installed, model = float(sys.argv[1]), *sys.argv[2:]
sys.path.insert(0, installed)
from accel.native.isolated_start import override_numba_settings
override_numba_settings()
from numba.core import event

class Compiled(event.Listener):
    def on_start(self, started):
        names.append(started.data["dispatcher"].py_func.__module__)

    def on_end(self, ended):
        pass

names = []
event.register("numba:compile", Compiled())
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.engine.service import EngineService

service = EngineService(EngineOptions(path=model), later=True)
service.load()
seconds, processor_s = time.time() - began, time.process_time()
service.warm_up()
service.close()
from accel.native.machine_code import packed_code
compiled = [name for name in names if name.split(".")[0] in ("accel", "repo_index")]
print(json.dumps([seconds, processor_s, len(compiled), packed_code() is not None]))
"""


def first_start(wheel: Path, model: Path) -> None:
    """Print the seconds of a process from its start with empty caches to a model that is ready, and
    of a second one. Both have the packages of this environment and the wheel's own code. Raises
    SystemExit where the wheel has code for this machine and something was compiled."""
    with tempfile.TemporaryDirectory() as scratch:
        installed = Path(scratch, "installed")
        with zipfile.ZipFile(wheel) as files:
            files.extractall(installed)
        homes = {f"XDG_{kind}_HOME": str(Path(scratch, kind)) for kind in ("CACHE", "DATA")}
        environment = {name: value for name, value in os.environ.items() if name[:5] != "NUMBA"}
        for name in ("first", "second"):
            values = str(time.time()), str(installed), str(model)
            command = [sys.executable, "-I", "-c", _START, *values]
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, env=environment | homes
            )
            seconds, processor_s, compiled, was_packed = json.loads(done.stdout.splitlines()[-1])
            print(
                f"{name} start: ready in {seconds:.2f} s, {processor_s:.2f} s of the processor; "
                f"{compiled} functions were compiled"
            )
            if compiled and was_packed:
                raise SystemExit(
                    f"release: {wheel.name} has code for this machine that does not fit"
                )
