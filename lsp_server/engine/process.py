"""The engine as a child process of the daemon."""

from __future__ import annotations

import json
import sys
from typing import BinaryIO

from lsp_server.engine.kv_folder import kv_folder
from lsp_server.engine.scheduler import EngineLoop
from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.codec import read
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.processes.child import FramePipe, serve_frames_on_stdio
from lsp_server.shared.processes.log import start_log
from operating_system.processes import stay_quick

SWITCH_S = 0.001


def main_on(arguments: list[str], source: BinaryIO, target: BinaryIO) -> None:
    """Serve the daemon over a pair of files. The one argument is ``EngineOptions`` as JSON."""
    # The thread that reads a cancel gets its turn within a millisecond of one that decodes.
    sys.setswitchinterval(SWITCH_S)
    stay_quick("completes code")
    options = read(EngineOptions, json.loads(arguments[0]))
    service = EngineService(options, caches=kv_folder(), later=True)
    pipe = FramePipe(source, target)
    EngineLoop(service, pipe.read, pipe.write).run()


if __name__ == "__main__":
    start_log("engine")
    serve_frames_on_stdio(main_on)
