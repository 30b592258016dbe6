"""The memory of engines: what one needs before it is loaded, and what it holds."""

from __future__ import annotations

import contextlib
import platform
from dataclasses import dataclass

from lsp_server.contract.options import EngineOptions
from lsp_server.engine.model_paths import model_folder
from lsp_server.errors import ModelUnavailable

_EIGHT_BITS = ("x86_64", "AMD64")
"""Machines that compute eight bits quickly, which ``auto`` means there."""


@dataclass(frozen=True, slots=True)
class Need:
    """nbytes: of main memory, for all that an engine loads."""

    nbytes: int
    options: EngineOptions

    def advice(self, most: int) -> str:
        """What would fit into so many bytes."""
        from accel.errors import ModelError
        from accel.models.room import size_of

        with contextlib.suppress(ModelUnavailable, ModelError, OSError, ValueError):
            size = size_of(
                model_folder(self.options.path), _dtype(self.options), self.options.kv_type
            )
            return size.what_fits(most - (self.nbytes - size.needed))
        return "a smaller model would fit"


def need_of(options: EngineOptions) -> Need:
    """From the headers of the models' files. Raises ModelUnavailable where there are none."""
    return Need(sum(_needed(options, model) for model in options.models), options)


def _needed(options: EngineOptions, model: str) -> int:
    from accel.errors import ModelError
    from accel.models.device import is_on_cpu
    from accel.models.gguf.file import parts_of
    from accel.models.room import REST_BYTES, size_of

    path = model_folder(model)
    if not is_on_cpu(options.device):
        return REST_BYTES
    try:
        return size_of(path, _dtype(options), options.kv_type).needed
    except (ModelError, OSError, ValueError):
        # A family that only llama.cpp knows: it takes the file as it is.
        files = parts_of(path) if path.is_file() else list(path.glob("*.safetensors"))
        return REST_BYTES + sum(file.stat().st_size for file in files)


def _dtype(options: EngineOptions) -> str:
    if options.dtype != "auto":
        return options.dtype
    return "int8" if platform.machine() in _EIGHT_BITS else "bf16"


def held_by(pid: int | None) -> int:
    """Bytes that a process and its children hold, without what they share with files."""
    import psutil

    if pid is None:
        return 0
    held = 0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for one in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                memory = one.memory_info()
                held += memory.rss - getattr(memory, "shared", 0)
    return held
