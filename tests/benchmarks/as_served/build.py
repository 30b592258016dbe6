"""A build beside a server: every core compiles."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from operating_system.machine import cores

_COMPILES = """
import pathlib, sysconfig
texts = [file.read_bytes() for file in pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")]
while True:
    for text in texts:
        compile(text, "measured", "exec")
"""


@contextmanager
def build() -> Iterator[None]:
    """Compile on all cores until the end of the ``with`` block."""
    command = [sys.executable, "-I", "-c", _COMPILES]
    compilers = [subprocess.Popen(command) for _ in range(cores())]
    try:
        yield
    finally:
        for compiler in compilers:
            compiler.kill()
            compiler.wait()


LOADS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "quiet": nullcontext,
    "build": build,
}
"""What else the machine does, by its name."""
