"""Open a model by its path: openers are asked in order, and the first that computes it has it."""

from __future__ import annotations

from accel.errors import InvalidRequest, UnsupportedModel
from accel.files.model_options import ModelOptions, part_of
from accel.models import torch_extra
from accel.models.backend import Backend
from accel.models.cpu.opening import open_own
from accel.models.hub import find_model_path
from accel.models.llama_cpp.library_files import is_installed
from accel.models.model_file import GgufModel, ModelFile, model_file


def open_backend(options: ModelOptions, *, download: bool = False) -> Backend:
    """Open a folder, a GGUF file, or a hub id that is on this machine.

    On a CPU our own forward computes what it knows: in int8 where ``dtype`` is auto, a GGUF file's
    weights as they are stored, or exactly, in fp32. ``backend`` auto has llama.cpp compute the GGUF
    files that we do not, and others where its library has a GPU. The network is used only with
    ``download``. Raises ModelNotFound, BrokenModel, UnsupportedModel, OutOfMemory or
    InvalidRequest.
    """
    options = part_of(options, ModelOptions)
    options.check()
    model = model_file(find_model_path(options.path or None, download=download))
    model.check(options.backend)
    backends = (opener(model, options) for opener in OPENERS)
    backend = next(opened for opened in backends if opened is not None)
    if backend.model.kv_type != options.kv_type:
        backend.model.notices += (
            f"keys and values stay in 16 bits: this forward ({backend.execution_path}) has no "
            f"{options.kv_type}",
        )
    return backend


def _by_llama_cpp(model: ModelFile, options: ModelOptions) -> Backend | None:
    if not isinstance(model, GgufModel) or options.backend == "own" or not is_installed():
        return None
    from accel.models.llama_cpp.opening import open_asked

    return open_asked(model, options)


def _by_torch(model: ModelFile, options: ModelOptions) -> Backend | None:
    if isinstance(model, GgufModel):
        raise InvalidRequest(
            f"{model.path} is a GGUF file, which is computed on the CPU or by llama.cpp; give "
            "dtype auto or fp32, and device auto"
        )
    if not torch_extra.is_installed():
        raise UnsupportedModel(
            f"{model.path} in {options.dtype} on {options.device} is computed by torch, which is "
            "not here",
            torch_extra.INSTALL,
        )
    from accel.models.torch_registry import open_by_torch

    return open_by_torch(model, options)


OPENERS = _by_llama_cpp, open_own, _by_torch
