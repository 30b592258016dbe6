"""GGUF files opened by llama.cpp, and probed."""

from __future__ import annotations

from dataclasses import replace

from accel.errors import AccelError
from accel.files.model_options import ModelOptions
from accel.models.backend import Backend
from accel.models.base import BatchKind
from accel.models.costs.first_costs import learn_costs
from accel.models.costs.profile_store import ProfileStore
from accel.models.cpu.quantised.instruction_sets import is_fast
from accel.models.fingerprint import fingerprint
from accel.models.llama_cpp.library_files import has_gpu_library
from accel.models.llama_cpp.model import LlamaCppModel
from accel.models.llama_cpp.probe import kind_of
from accel.models.model_file import GgufModel
from operating_system.machine import cores


def open_asked(file: GgufModel, options: ModelOptions) -> Backend | None:
    """Return a model that llama.cpp computes: one that ``options`` leave to it, or by ``backend``
    auto one that our own forward has no quick products for or that a GPU computes. None for others.
    Raises UnsupportedModel or OutOfMemory."""
    own_options = replace(options, path="", threads=options.threads or cores())
    own_options = replace(own_options, gpu_layers=0) if options.device == "cpu" else own_options
    if options.backend == "auto":
        if options.dtype != "auto":
            return None
        if is_fast() and file.is_known:
            return _opened_on_gpu(file, own_options)
    return _opened(file, LlamaCppModel(file.path, own_options), own_options.threads)


def _opened_on_gpu(file: GgufModel, options: ModelOptions) -> Backend | None:
    """Return a model of which a GPU computes layers; None where no GPU can."""
    try:
        if options.gpu_layers == 0 or not has_gpu_library():
            return None
        model = LlamaCppModel(file.path, options)
        if model.is_on_gpu:
            return _opened(file, model, options.threads)
    except (AccelError, OSError):
        return None
    model.close()
    return None


def _opened(file: GgufModel, model: LlamaCppModel, threads: int) -> Backend:
    # Costs, and the batches that it takes, depend on all of that.
    model.fingerprint = fingerprint(file.path, f"{model.system} {model.computed_by}")
    store = ProfileStore(model.fingerprint)
    kind = store.get("kind")
    if kind not in [int(each) for each in BatchKind]:
        kind = kind_of(model)
        store.put("kind", int(kind))
    model.takes(BatchKind(kind))
    costs = learn_costs(model, store, f"gguf/{threads}")
    return Backend(model, file.tokenizer, costs, threads, "llama.cpp")
