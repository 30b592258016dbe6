"""GGUF files opened by llama.cpp, and probed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from accel.draft_tree import DraftTree, Source
from accel.errors import AccelError, BackendDied, OutOfMemory
from accel.files.model_options import ModelOptions
from accel.models.backend import Backend
from accel.models.base import BatchKind, Model
from accel.models.batch import chain_batch, tree_batch
from accel.models.costs.first_costs import learn_costs
from accel.models.costs.profile_store import ProfileStore
from accel.models.cpu.quantised.instruction_sets import is_fast
from accel.models.fingerprint import fingerprint
from accel.models.llama_cpp.library_files import has_gpu_library
from accel.models.llama_cpp.model import LlamaCppModel
from accel.models.model_file import GgufModel
from operating_system.machine import cores

_TOLERANCE = 0.05
"""Of the largest logit: kernels for other numbers of rows round otherwise."""
_BEFORE = np.arange(1, 11, dtype=np.int32)
_PENDING, _WRONG, _RIGHT, _NEXT = (np.array([token], np.int32) for token in (11, 12, 13, 14))


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
    model.capability = replace(model.capability, kind=BatchKind(kind))
    costs = learn_costs(model, store, f"gguf/{threads}")
    return Backend(model, file.tokenizer, costs, threads, "llama.cpp")


def kind_of(model: Model) -> BatchKind:
    """Trees where a tree is computed as its path alone would be, chains where what is rejected of
    one leaves no trace, else one token after another."""
    for kind in (BatchKind.TREE, BatchKind.CHAIN):
        if kind <= model.capability.kind and _agrees(model, kind):
            return kind
    return BatchKind.PLAIN


def _agrees(model: Model, kind: BatchKind) -> bool:
    if kind == BatchKind.TREE:
        tree = DraftTree.chain(np.concatenate([_WRONG, _RIGHT]), Source.MODEL)
        tree.parents[:] = -1
        path = [0, 2]
    else:
        tree = DraftTree.chain(np.concatenate([_RIGHT, _WRONG]), Source.MODEL)
        path = [0, 1]
    try:
        cache = model.new_cache(32)
        model.forward(chain_batch(_BEFORE, len(_BEFORE)), [cache])
        cache.commit(range(len(_BEFORE)))
        model.forward(tree_batch(_PENDING, tree), [cache])
        cache.commit(path)
        logits = model.forward(chain_batch(_NEXT, 0), [cache]).row(0)
        text = np.concatenate([_BEFORE, _PENDING, _RIGHT, _NEXT])
        expected = model.forward(chain_batch(text, len(text) - 1), [model.new_cache(32)]).row(0)
    except (BackendDied, OutOfMemory):
        return False
    return bool(np.abs(logits - expected).max() < _TOLERANCE * np.abs(expected).max())
