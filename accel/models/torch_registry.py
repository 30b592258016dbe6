"""Open a model that torch computes, in the way that is right and fastest on this machine, which is
remembered."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from accel.errors import InvalidRequest, OutOfMemory, UnsupportedModel
from accel.files.memory_fit import check_fits
from accel.files.model_options import ModelOptions
from accel.models import tree_attention
from accel.models.adaptive_tokens import add_adaptive_tokens
from accel.models.attention_windows import attention_windows
from accel.models.autotune import LARGE, RunSettings, can_be_stored, profile, rate, score
from accel.models.backend import Backend
from accel.models.base import BatchKind, Model
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.profile_store import ProfileStore
from accel.models.cuda.pooled_llama import PooledLlama
from accel.models.fingerprint import fingerprint
from accel.models.hf_loading import end_tokens, load_module
from accel.models.model_file import ModelFile, model_file
from accel.models.packed_linear import Linear
from accel.models.probe import Probe
from accel.models.torch_names import DTYPES
from operating_system.machine import cores

_log = logging.getLogger(__name__)

_EXECUTION_PATHS = ("pooled", "tree", "chain", "plain")


def open_by_torch(about: ModelFile, options: ModelOptions) -> Backend:
    """A model that torch computes. Raises InvalidRequest, BrokenModel, UnsupportedModel or
    OutOfMemory."""
    folder, place, threads = about.path, device_of(options.device), options.threads or None
    if options.dtype == "int8":
        raise InvalidRequest(
            f"int8 is for models that our own forward computes on a CPU, not for {folder} on "
            f"{place.type}; give dtype auto or bf16"
        )
    if place.type == "cpu":
        check_fits(folder, about.size("fp32" if options.dtype == "fp32" else "bf16"))
    store = ProfileStore(fingerprint(folder, str(place)))
    settings = choose_settings(folder, options.dtype, threads, place, store)
    torch.set_num_threads(settings.threads)
    model, execution_path = open_model(folder, settings.dtype, place, store)
    return Backend(
        model=model,
        tokenizer=about.tokenizer,
        costs=profile(model, settings, store),
        threads=settings.threads,
        execution_path=execution_path,
        store=store,
    )


def open_model(
    folder: Path, dtype: str, device: torch.device, store: ProfileStore
) -> tuple[Model, str]:
    """The fastest execution path that computes what the module itself does, and its name, which is
    stored in ``store``.

    pooled and tree verify trees, chain one branch, plain nothing. Raises BrokenModel,
    UnsupportedModel or OutOfMemory.
    """
    key = f"path/{dtype}"
    verdict = store.get(key)

    def read() -> tuple[Any, tuple[int, ...]]:
        module = load_module(folder, DTYPES[dtype], device, "eager")
        return module, add_adaptive_tokens(module, folder)

    def opened(model: Model, execution_path: str) -> tuple[Model, str]:
        model.end_tokens, model.adaptive_tokens = ends, adaptive
        model.fingerprint = fingerprint(folder, str(device))
        return model, execution_path

    module, adaptive = read()
    ends = end_tokens(module)
    if verdict in _EXECUTION_PATHS:
        model = _build(verdict, module)
        if model is not None:
            return opened(model, verdict)
        module, adaptive = read()
    probe = Probe(module)
    for path in _EXECUTION_PATHS:
        model = None
        try:
            model = _build(path, module)
            found = model is not None and probe.agrees(model, model.capability.kind)
        except (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, IndexError):
            # What a foreign architecture raises on rows it cannot take is not known beforehand.
            _log.info("%s does not decode the %s way", folder, path, exc_info=True)
            found = False
        if found:
            assert model is not None
            store.put(key, path)
            return opened(model, path)
        if path == "pooled" and model is not None:
            # It took the layers' weights.
            module, adaptive = read()
    raise UnsupportedModel(
        f"{folder}: no way to decode it with a cache gives its own answers; use another model"
    )


def _build(path: str, module: nn.Module) -> Model | None:
    """The model of an execution path, None where the module does not suit it."""
    if path == "pooled":
        weight: Any = next(module.parameters())
        if weight.device.type != "cuda":
            return None
        try:
            return PooledLlama.from_module(module)
        except MemoryError as error:
            raise OutOfMemory(f"no room on {weight.device}; use a smaller model") from error
    if not hasattr(module, "set_attn_implementation"):
        return None
    # Its import takes most of a second.
    from accel.models.transformers_model import TransformersModel

    full_rows = attention_windows(module.config.get_text_config()) is not None  # type: ignore
    if path != "plain" and not full_rows:
        return None
    switch: Any = module.set_attn_implementation
    if path == "tree":
        switch(tree_attention.NAME)
        return TransformersModel(module, BatchKind.TREE)
    switch("eager")
    return TransformersModel(module, BatchKind.CHAIN if path == "chain" else BatchKind.PLAIN)


def choose_settings(
    folder: Path, dtype: str, threads: int | None, device: torch.device, store: ProfileStore
) -> RunSettings:
    """dtype and thread count: as given, or the fastest by a measurement that is stored."""
    if device.type != "cpu":
        return RunSettings("bf16" if dtype == "auto" else dtype, threads or torch.get_num_threads())
    counts = [threads] if threads else thread_counts(folder)
    names = list(DTYPES) if dtype == "auto" else [dtype]
    if len(counts) == len(names) == 1:
        return RunSettings(names[0], counts[0])
    key = f"settings/{','.join(names)}/{','.join(map(str, counts))}"
    known = store.get(key)
    if isinstance(known, list) and len(known) == 2 and known[0] in names and known[1] in counts:
        return RunSettings(known[0], known[1])
    scores: dict[tuple[str, int], float] = {}
    for name in names:
        found = _scores(folder, name, counts, device, store)
        scores |= {(name, count): score for count, score in found.items()}
    best = min(scores, key=scores.__getitem__)
    if all(can_be_stored(count) for count in counts):
        store.put(key, list(best))
    return RunSettings(*best)


def thread_counts(folder: Path) -> list[int]:
    """Counts worth trying. A small model leaves one core free: its threads meet dozens of times in
    a millisecond, and when another program takes a core all of them wait."""
    most = min(torch.get_num_threads(), cores())
    if model_file(folder).weight_bytes("bf16") <= 2 * LARGE:
        most = max(most - 1, 1)
    return sorted({1, max(most // 2, 1), most})


def _scores(
    folder: Path, dtype: str, counts: list[int], device: torch.device, store: ProfileStore
) -> dict[int, float]:
    """Seconds per expected token by thread count."""
    before = torch.get_num_threads()
    scores = {}
    try:
        if model_file(folder).weight_bytes("bf16") > 2 * LARGE:
            matrix = Linear(torch.zeros(4096, 4096, dtype=DTYPES[dtype]))
            for count in counts:
                torch.set_num_threads(count)
                scores[count] = score(_time_matrix(matrix, DTYPES[dtype]))
        else:
            model = open_model(folder, dtype, device, store)[0]
            for count in counts:
                torch.set_num_threads(count)
                scores[count] = rate(model)
    finally:
        torch.set_num_threads(before)
    return scores


def _time_matrix(matrix: Linear, dtype: torch.dtype) -> ForwardCosts:
    rows = (1, 8, 32)
    seconds = []
    for count in rows:
        x = torch.zeros(count, 4096, dtype=dtype)
        matrix(x)
        times = []
        for _ in range(5):
            started = time.perf_counter()
            matrix(x)
            times.append(time.perf_counter() - started)
        seconds.append(min(times))
    return ForwardCosts([512], list(rows), np.array([seconds]))


def device_of(name: str) -> torch.device:
    """The device of that name; auto is CUDA, then MPS, then the CPU. Raises InvalidRequest."""
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
