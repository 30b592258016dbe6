"""The memory of engines: how much a model needs before it is loaded, and how much a process
uses.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsp_server.engine.model_paths import model_file_of, model_folder
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.errors import ModelUnavailable

if TYPE_CHECKING:
    from accel.files.memory_fit import Size
    from accel.models.model_file import ModelFile


@dataclass(frozen=True, slots=True)
class Need:
    """nbytes: of main memory, for all that an engine loads."""

    nbytes: int
    options: EngineOptions

    def advice(self, most: int) -> str:
        """Return advice on a model that fits into ``most`` bytes."""
        from accel.errors import ModelError

        with contextlib.suppress(ModelUnavailable, ModelError, OSError, ValueError):
            size = _size(model_file_of(self.options.path), self.options)
            return size.what_fits(most - (self.nbytes - size.needed))
        return "a smaller model would fit"


def need_of(options: EngineOptions) -> Need:
    """From the headers of the models' files. Raises ModelUnavailable where there are none."""
    return Need(sum(_needed(options, model) for model in options.models), options)


def _needed(options: EngineOptions, model: str) -> int:
    from accel.errors import ModelError
    from accel.files.gguf.file import is_gguf
    from accel.files.memory_fit import REST_BYTES
    from accel.files.model_path import weights_files
    from accel.models.device import is_on_cpu

    path = model_folder(model)
    if not is_on_cpu(options.device, is_gguf=is_gguf(path)):
        return REST_BYTES
    with contextlib.suppress(ModelUnavailable, ModelError, OSError, ValueError):
        opened = model_file_of(model)
        if opened.is_known:
            return _size(opened, options).needed
    # A family that only llama.cpp knows: it takes the file as it is.
    return REST_BYTES + sum(file.stat().st_size for file in weights_files(path))


def _size(opened: ModelFile, options: EngineOptions) -> Size:
    if options.dtype != "auto":
        return opened.size(options.dtype, options.kv_type)
    return opened.size("int8" if opened.has_compiled_forward else "bf16", options.kv_type)


def used_by(pid: int | None) -> int:
    """Return bytes that a process and its children hold, without what they share with files."""
    import psutil

    if pid is None:
        return 0
    used = 0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for member in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                memory = member.memory_info()
                used += memory.rss - getattr(memory, "shared", 0)
    return used
