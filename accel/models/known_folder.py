"""Folders that are opened without torch: their fastest execution path is known, or there is no
torch."""

from __future__ import annotations

from pathlib import Path

from accel import torch_extra
from accel.model_options import KvType
from accel.models.autotune import (
    INT8,
    INT8_FROM,
    Profile,
    RunSettings,
    can_be_stored,
    may_use_more,
    profile_key,
    score,
)
from accel.models.base import Model
from accel.models.costs.profile_store import ProfileStore
from accel.models.cpu.matmul_timing import product_costs
from accel.models.cpu.opening import open_folder
from accel.models.cpu.quantised.instruction_sets import is_fast
from accel.models.cpu.safetensors_decoder import can_be_read, read_decoder
from accel.models.fingerprint import fingerprint
from accel.models.model_file import model_file

_TIMED_LAYERS = 2
"""Number formats are compared on the products of so many layers."""
_TIMED_S = 0.12
"""Seconds for which these are measured."""


def open_known(
    folder: Path, *, dtype: str, threads: int | None, kv_type: KvType
) -> tuple[Model, RunSettings, Profile, ProfileStore] | None:
    """A model on the CPU, its settings, what forwards cost, and the store of that; None where torch
    has to probe the folder first, or alone knows the model."""
    store = ProfileStore(fingerprint(folder, "cpu"))
    settings = _known_settings(dtype, threads, kv_type, store)
    if settings is None and not torch_extra.is_installed() and can_be_read(folder, INT8):
        fastest = _fastest(folder) if dtype == "auto" else dtype
        settings = RunSettings(fastest, threads or 1, may_use_more(threads), kv_type)
        remember(store, dtype, threads, settings)
    model = open_folder(folder, settings.dtype, kv_type) if settings is not None else None
    if model is None or settings is None:
        return None
    return model, settings, Profile(model, settings, store), store


def _fastest(folder: Path) -> str:
    """The number format that gives the most tokens a second."""
    if is_fast() and model_file(folder).weight_bytes("bf16") >= INT8_FROM:
        return INT8
    seconds = {}
    for dtype in ("fp32", "bf16"):
        decoder = read_decoder(folder, dtype, layers=_TIMED_LAYERS)
        assert decoder is not None
        seconds[dtype] = score(product_costs(decoder.weights, _TIMED_S))
    return min(seconds, key=seconds.__getitem__)


def remember(store: ProfileStore, dtype: str, threads: int | None, settings: RunSettings) -> None:
    """Store that the compiled forward computes a folder right with these settings, for ``dtype``
    and ``threads`` as a user gave them."""
    if can_be_stored(settings.threads):
        key = _key(dtype, threads, settings.kv_type)
        store.put(key, [settings.dtype, settings.threads])


def _known_settings(
    dtype: str, threads: int | None, kv_type: KvType, store: ProfileStore
) -> RunSettings | None:
    may_share = may_use_more(threads)
    known = store.get(_key(dtype, threads, kv_type))
    if isinstance(known, list) and len(known) == 2:
        return RunSettings(str(known[0]), int(known[1]), may_share, kv_type)
    return None


def _key(dtype: str, threads: int | None, kv_type: KvType) -> str:
    return profile_key(f"known/{dtype}/{threads}", kv_type)
