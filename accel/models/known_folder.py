"""Folders of which is known how they are computed fastest, and that it is right: they are opened
without torch."""

from __future__ import annotations

from pathlib import Path

from accel.model_options import KvType
from accel.models.autotune import RunSettings, can_be_kept, kept_as, may_use_more, profile
from accel.models.base import Model
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.profile_store import ProfileStore
from accel.models.cpu.safetensors_model import open_folder
from accel.models.fingerprint import fingerprint


def open_known(
    folder: Path, *, dtype: str, threads: int | None, kv_type: KvType
) -> tuple[Model, RunSettings, ForwardCosts, ProfileStore] | None:
    """A model on the CPU, what it runs with, what was measured, and where that is kept; None where
    torch has to look at the folder first."""
    store = ProfileStore(fingerprint(folder, "cpu"))
    settings = _known_settings(dtype, threads, kv_type, store)
    model = open_folder(folder, settings.dtype, kv_type) if settings is not None else None
    if model is None or settings is None:
        return None
    return model, settings, profile(model, settings, store), store


def remember(store: ProfileStore, dtype: str, threads: int | None, settings: RunSettings) -> None:
    """Keep that a folder is computed right by the compiled forward with these settings where
    ``dtype`` and ``threads`` are asked for."""
    if can_be_kept(settings.threads):
        key = _key(dtype, threads, settings.kv_type)
        store.put(key, [settings.dtype, settings.threads])


def _known_settings(
    dtype: str, threads: int | None, kv_type: KvType, store: ProfileStore
) -> RunSettings | None:
    may_share = may_use_more(threads)
    kept = store.get(_key(dtype, threads, kv_type))
    if isinstance(kept, list) and len(kept) == 2:
        return RunSettings(str(kept[0]), int(kept[1]), may_share, kv_type)
    return None


def _key(dtype: str, threads: int | None, kv_type: KvType) -> str:
    return kept_as(f"known/{dtype}/{threads}", kv_type)


__all__ = ["open_known", "remember"]
