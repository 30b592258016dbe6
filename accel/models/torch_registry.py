"""Open a model that torch reads in the way that is right and fastest on this machine, and remember
which it was."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from accel.errors import InvalidRequest, OutOfMemory, UnsupportedModel
from accel.files.gguf.file import is_gguf
from accel.model_options import KvType
from accel.models import tree_attention
from accel.models.adaptive_tokens import add_adaptive_tokens
from accel.models.attention_windows import attention_windows
from accel.models.autotune import (
    INT8,
    INT8_FROM,
    LARGE,
    RunSettings,
    can_be_stored,
    is_faster,
    may_use_more,
    profile,
    profile_key,
    rate,
    score,
)
from accel.models.base import BatchKind, Model
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.profile_store import ProfileStore
from accel.models.cpu.llama import CompiledLlama
from accel.models.cpu.matmul_timing import product_costs
from accel.models.cpu.named_tensors import packed_weights
from accel.models.cpu.opening import open_file, open_folder
from accel.models.cpu.quantised.instruction_sets import is_fast
from accel.models.cpu.torch_weights import ModuleTensors, can_be_compiled
from accel.models.cuda.pooled_llama import PooledLlama
from accel.models.fingerprint import fingerprint
from accel.models.hf_loading import end_tokens, load_module
from accel.models.known_folder import remember
from accel.models.llama_torch import SHARED_WIDTHS, FusedLlama
from accel.models.model_file import model_file
from accel.models.packed_linear import Linear
from accel.models.probe import Probe
from accel.models.torch_names import DTYPES
from operating_system.machine import cores

STORED = {**DTYPES, INT8: torch.bfloat16}
"""What weights are read as."""

SMALL = 100_000_000
"""Bytes up to which formats are compared on the products of a compiled forward: to compile all of
it for a format that is not taken takes half a minute."""

PRODUCTS_S = 0.12
"""Seconds for which these are measured."""

_log = logging.getLogger(__name__)

_EXECUTION_PATHS = ("compiled", "pooled", "lean", "tree", "chain", "plain")


def open_by_torch(
    folder: Path, *, dtype: str, threads: int | None, device: str, kv_type: KvType
) -> tuple[Model, str, RunSettings, ForwardCosts, ProfileStore]:
    """``backends.open_backend`` of what torch reads: a model and the name of its execution
    path, with the settings that were chosen and the costs that were measured."""
    place = device_of(device)
    if dtype == INT8 and place.type != "cpu":
        raise InvalidRequest(f"int8 is for the CPU; give dtype bf16 for {place.type}")
    store = ProfileStore(fingerprint(folder, str(place)))
    settings = choose_settings(folder, dtype, threads, place, store)
    settings = replace(settings, kv_type=kv_type)
    torch.set_num_threads(settings.threads)
    model, execution_path = open_model(
        folder, settings.dtype, place, store, may_share=settings.may_share, kv_type=settings.kv_type
    )
    if execution_path == "compiled":
        remember(store, dtype, threads, settings)
    if execution_path == "lean":
        _share_forwards(cast("FusedLlama", model), settings, store)
    return model, execution_path, settings, profile(model, settings, store), store


def _share_forwards(model: FusedLlama, settings: RunSettings, store: ProfileStore) -> None:
    """Have requests share forwards as far as that changes no bit, which is stored."""
    key = f"rows alike/{settings.dtype}/{settings.threads}"
    rows = store.get(key)
    if rows not in (0, *SHARED_WIDTHS):
        rows = model.rows_alike()
        store.put(key, rows)
    model.share(rows)


def open_model(
    folder: Path,
    dtype: str,
    device: torch.device,
    store: ProfileStore,
    *,
    may_share: bool = False,
    kv_type: KvType = "f16",
) -> tuple[Model, str]:
    """The fastest execution path that computes what the module itself does, and its name, which is
    stored in ``store``.

    compiled, pooled, lean and tree verify trees, chain one branch, plain nothing. ``may_share``:
    a compiled forward may take more threads. ``kv_type`` is for that one alone. With
    int8 there is but the first. Raises BrokenModel, UnsupportedModel or OutOfMemory.
    """
    if dtype == INT8 and is_gguf(folder):
        return open_file(folder, kv_type), "compiled"
    key, stored = profile_key(f"path/{dtype}", kv_type), STORED[dtype]
    verdict = store.get(key)
    paths = _EXECUTION_PATHS[:1] if dtype == INT8 else _EXECUTION_PATHS

    if verdict == "compiled" and device.type == "cpu":
        # A verdict is what a probe of this folder said: the numbers are known to be right.
        known = open_folder(folder, dtype, kv_type)
        if known is not None:
            return known, verdict

    def read() -> tuple[Any, tuple[int, ...]]:
        module = load_module(folder, stored, device, "eager")
        return module, add_adaptive_tokens(module, folder)

    def opened(model: Model, execution_path: str) -> tuple[Model, str]:
        model.end_tokens, model.adaptive_tokens = ends, adaptive
        model.fingerprint = fingerprint(folder, str(device))
        return model, execution_path

    module, adaptive = read()
    ends = end_tokens(module)
    if verdict in paths:
        model = _build(verdict, module, folder, dtype, kv_type)
        if model is not None:
            return opened(model, verdict)
        module, adaptive = read()
    probe = Probe(module)
    for path in paths:
        model, is_emptied = None, path in ("compiled", "pooled", "lean")
        try:
            model = _build(path, module, folder, dtype, kv_type)
            is_emptied = is_emptied and model is not None
            found = model is not None and probe.agrees(model, model.capability.kind)
            if found and model is not None and path == "compiled" and dtype != INT8:
                lean = FusedLlama.from_module(load_module(folder, stored, device, "eager"))
                found = lean is None or is_faster(model, lean, may_share=may_share)
        except (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, IndexError):
            # What a foreign architecture raises on rows it cannot take is not known beforehand.
            _log.info("%s does not decode the %s way", folder, path, exc_info=True)
            found = False
        if found:
            assert model is not None
            store.put(key, path)
            return opened(model, path)
        if is_emptied:
            module, adaptive = read()
    if dtype == INT8:
        raise UnsupportedModel(f"{folder} cannot be computed in int8; give dtype auto or bf16")
    raise UnsupportedModel(
        f"{folder}: no way to decode it with a cache gives its own answers; use another model"
    )


def _build(path: str, module: nn.Module, folder: Path, dtype: str, kv_type: KvType) -> Model | None:
    """The model of an execution path, None where the module does not suit it."""
    if path == "compiled":
        weight: Any = next(module.parameters())
        if weight.device.type == "cpu" and (model := open_folder(folder, dtype, kv_type)):
            # As it is opened without torch, to the last bit.
            return model
        return CompiledLlama.from_module(module, quantised=dtype == INT8, kv_type=kv_type)
    if path == "pooled":
        weight = next(module.parameters())
        if weight.device.type != "cuda":
            return None
        try:
            return PooledLlama.from_module(module)
        except MemoryError as error:
            raise OutOfMemory(f"no room on {weight.device}; use a smaller model") from error
    if path == "lean":
        return FusedLlama.from_module(module)
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
    may_share = may_use_more(threads)
    if dtype == INT8 or (dtype == "auto" and _suits_int8(folder)):
        return RunSettings(INT8, threads or 1, may_share)
    counts = [threads] if threads else thread_counts(folder)
    names = list(DTYPES) if dtype == "auto" else [dtype]
    if len(counts) == len(names) == 1:
        return RunSettings(names[0], counts[0], may_share)
    key = f"settings/{','.join(names)}/{','.join(map(str, counts))}"
    known = store.get(key)
    if isinstance(known, list) and len(known) == 2 and known[0] in names and known[1] in counts:
        return RunSettings(known[0], known[1], may_share)
    scores: dict[tuple[str, int], float] = {}
    for name in names:
        found = _scores(folder, name, counts, device, store, may_share=may_share)
        scores |= {(name, count): score for count, score in found.items()}
    best = min(scores, key=scores.__getitem__)
    if all(can_be_stored(count) for count in counts):
        store.put(key, list(best))
    return RunSettings(best[0], best[1], may_share)


def thread_counts(folder: Path) -> list[int]:
    """Counts worth trying. A small model leaves one core free: its threads meet dozens of times in
    a millisecond, and when another program takes a core all of them wait."""
    most = min(torch.get_num_threads(), cores())
    if model_file(folder).weight_bytes("bf16") <= 2 * LARGE:
        most = max(most - 1, 1)
    return sorted({1, max(most // 2, 1), most})


def _suits_int8(folder: Path) -> bool:
    """Whether a model is so large that int8 is the fastest, and computed in it. Of a GGUF file
    whether it is computed as it is stored."""
    if not is_fast():
        return False
    about = model_file(folder)
    is_large = is_gguf(folder) or about.weight_bytes("bf16") >= INT8_FROM
    return is_large and about.has_compiled_forward


def _scores(
    folder: Path,
    dtype: str,
    counts: list[int],
    device: torch.device,
    store: ProfileStore,
    *,
    may_share: bool,
) -> dict[int, float]:
    """Seconds per expected token by thread count."""
    if model_file(folder).weight_bytes("bf16") <= SMALL and device.type == "cpu":
        module = load_module(folder, STORED[dtype], device, "eager")
        if can_be_compiled(module):
            costs = product_costs(packed_weights(ModuleTensors(module)), PRODUCTS_S)
            return dict.fromkeys(counts, score(costs))
    before = torch.get_num_threads()
    scores = {}
    try:
        if model_file(folder).weight_bytes("bf16") > 2 * LARGE:
            matrix = Linear(torch.zeros(4096, 4096, dtype=STORED[dtype]))
            for count in counts:
                torch.set_num_threads(count)
                scores[count] = score(_time_matrix(matrix, STORED[dtype]))
        else:
            model = open_model(folder, dtype, device, store, may_share=may_share)[0]
            for count in counts:
                torch.set_num_threads(count)
                scores[count] = rate(model, may_share=may_share)
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
