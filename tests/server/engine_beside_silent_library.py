"""An engine process that has a llama.cpp to compare, whose process never answers.

The first argument is a file that is written when that process has begun.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "decoding"))

from llama_cpp_worker import silent_worker

from accel.models.llama_cpp import opening, process
from lsp_server.engine.process import main_on
from lsp_server.shared.processes.child import serve_frames_on_stdio

if __name__ == "__main__":
    opening.COMPARED_BYTES = 0
    process.COMMAND = silent_worker(Path(sys.argv.pop(1)))  # type: ignore[assignment]
    serve_frames_on_stdio(main_on)
