"""Models that torch computes: modules of transformers, given drafts as far as a probe allows."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch
from torch import nn

from accel.errors import InvalidRequest, UnsupportedModel
from accel.files.memory_fit import check_fits, fits_in_memory
from accel.files.model_options import ModelOptions
from accel.models import tree_attention
from accel.models.backend import Backend
from accel.models.base import BatchKind, Model
from accel.models.costs.first_costs import learn_costs
from accel.models.costs.profile_store import ProfileStore
from accel.models.fingerprint import fingerprint
from accel.models.hf_loading import add_adaptive_tokens, end_tokens, load_module
from accel.models.model_file import ModelFile
from accel.models.probe import Probe
from accel.models.torch_forward import DTYPES
from accel.models.transformers_model import attention_windows
from operating_system.machine import cores

_log = logging.getLogger(__name__)

_EXECUTION_PATHS = {"tree": BatchKind.TREE, "chain": BatchKind.CHAIN, "plain": BatchKind.PLAIN}


def open_by_torch(model_file: ModelFile, options: ModelOptions) -> Backend:
    """Open a folder on the device of ``options``. Raises InvalidRequest, BrokenModel,
    UnsupportedModel or OutOfMemory."""
    folder, device = model_file.path, device_of(options.device)
    if options.dtype == "int8":
        raise InvalidRequest(
            f"int8 is for models that our own forward computes on a CPU, not for {folder} on "
            f"{device.type}; give dtype auto or bf16"
        )
    dtype = options.dtype if options.dtype != "auto" else _usual_dtype(model_file, device)
    if device.type == "cpu":
        check_fits(folder, model_file.size(dtype))
    # Its numbers may depend on how many threads compute, so these stay as many.
    threads = options.threads or cores()
    torch.set_num_threads(threads)
    store = ProfileStore(fingerprint(folder, str(device)))
    model, execution_path = open_model(folder, dtype, device, store)
    return Backend(
        model=model,
        tokenizer=model_file.tokenizer,
        costs=learn_costs(model, store, f"{dtype}/{threads}"),
        threads=threads,
        execution_path=execution_path,
    )


def _usual_dtype(model: ModelFile, device: torch.device) -> str:
    """Return ``fp32`` for a model that has room so on a CPU, else ``bf16``."""
    size = model.size("fp32")
    is_wide = device.type == "cpu" and fits_in_memory(size.nbytes, size.token_bytes)
    return "fp32" if is_wide else "bf16"


def open_model(
    folder: Path, dtype: str, device: torch.device, store: ProfileStore
) -> tuple[Model, str]:
    """Return the model of the first execution path that computes what the module itself does, and
    the name of that path, which is stored in ``store``.

    tree verifies trees, chain one branch, plain nothing. Raises BrokenModel, UnsupportedModel or
    OutOfMemory.
    """
    key = f"path/{dtype}"
    module = load_module(folder, DTYPES[dtype], device, "eager")
    adaptive_tokens = add_adaptive_tokens(module, folder)
    path = store.get(key)
    if path not in _EXECUTION_PATHS:
        path = _probed_path(module, folder)
        store.put(key, path)
    model = _build(path, module)
    assert model is not None, "the path was probed with this module"
    model.end_tokens, model.adaptive_tokens = end_tokens(module), adaptive_tokens
    model.fingerprint = fingerprint(folder, str(device))
    return model, path


def _probed_path(module: nn.Module, folder: Path) -> str:
    probe = Probe(module)
    for path in _EXECUTION_PATHS:
        try:
            model = _build(path, module)
            if model is not None and probe.agrees(model, model.capability.kind):
                return path
        except (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, IndexError):
            # An unknown architecture may raise any of these on rows that it cannot take.
            _log.info("%s does not decode the %s way", folder, path, exc_info=True)
    raise UnsupportedModel(
        f"{folder}: no way to decode it with a cache gives its own answers; use another model"
    )


def _build(path: str, module: nn.Module) -> Model | None:
    """Return the model of an execution path, None where the module does not suit it."""
    if not hasattr(module, "set_attn_implementation"):
        return None
    # Its import takes most of a second.
    from accel.models.transformers_model import TransformersModel

    has_rows = attention_windows(module.config.get_text_config()) is not None  # type: ignore
    if path != "plain" and not has_rows:
        return None
    switch: Any = module.set_attn_implementation
    switch(tree_attention.NAME if path == "tree" else "eager")
    return TransformersModel(module, _EXECUTION_PATHS[path])


def device_of(name: str) -> torch.device:
    """Return the device called ``name``; auto is CUDA, then MPS, then the CPU. Raises
    InvalidRequest."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidRequest(f"device {name!r} is not usable here; give auto or cpu") from error
    return device
