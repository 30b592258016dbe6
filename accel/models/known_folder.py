"""Folders whose fastest execution path is known: they are opened without torch."""

from __future__ import annotations

from pathlib import Path

from accel.model_options import KvType
from accel.models.autotune import (
    RunSettings,
    can_be_stored,
    may_use_more,
    profile,
    profile_key,
)
from accel.models.base import Model
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.profile_store import ProfileStore
from accel.models.cpu.safetensors_model import open_folder
from accel.models.fingerprint import fingerprint


def open_known(
    folder: Path, *, dtype: str, threads: int | None, kv_type: KvType
) -> tuple[Model, RunSettings, ForwardCosts, ProfileStore] | None:
    """A model on the CPU, its settings and costs, and the store of these; None where torch has to
    probe the folder first."""
    store = ProfileStore(fingerprint(folder, "cpu"))
    settings = _known_settings(dtype, threads, kv_type, store)
    model = open_folder(folder, settings.dtype, kv_type) if settings is not None else None
    if model is None or settings is None:
        return None
    return model, settings, profile(model, settings, store), store


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


__all__ = ["open_known", "remember"]
