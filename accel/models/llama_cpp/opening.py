"""Open a GGUF file by llama.cpp: probe it, measure it, and choose how many rows a forward has."""

from __future__ import annotations

from pathlib import Path

from accel.errors import AccelError
from accel.free_memory import free_bytes
from accel.models.autotune import RunSettings, can_be_kept
from accel.models.base import BatchKind
from accel.models.fingerprint import fingerprint
from accel.models.llama_cpp.model import LlamaCppModel
from accel.models.llama_cpp.options import LlamaCppOptions
from accel.models.llama_cpp.places import find_library
from accel.models.llama_cpp.probe import kind_of
from accel.models.llama_cpp.row_costs import row_costs
from accel.planning.cost_model import ForwardCosts
from accel.planning.fixed_width import fixed_widths, typical_rate
from accel.planning.profile_store import ProfileStore

FORM = "llama.cpp"
COMPARED_BYTES = 32 << 20
"""Of a smaller file a forward is so short that handing it to another process takes longer."""

Opened = tuple[LlamaCppModel, RunSettings, ForwardCosts, ProfileStore]


def open_by_llama_cpp(path: Path, options: LlamaCppOptions) -> Opened:
    """The model, what it runs with, what forwards cost, and what is kept about it.

    Raises UnsupportedModel or OutOfMemory.
    """
    settings = RunSettings("gguf", options.threads)
    model = LlamaCppModel(path, options)
    # What forwards cost, and whether they agree, goes by all of that.
    model.fingerprint = fingerprint(path, f"{FORM} {model.system} {model.computed_by}")
    store = ProfileStore(model.fingerprint)
    kind = store.get("kind")
    if kind not in [int(each) for each in BatchKind]:
        kind = kind_of(model)
        store.put("kind", int(kind))
    model.takes(BatchKind(kind))
    costs = _costs(model, settings, store)
    model.computes_rows_of(*fixed_widths(costs))
    model.measured = ", ".join(
        f"{rows}: {1e3 * seconds:.1f} ms"
        for rows, seconds in zip(costs.rows, costs.seconds[0].tolist(), strict=True)
    )
    model.notice = _notice(model)
    return model, settings, costs, store


def open_where_faster(
    path: Path, own: ForwardCosts, own_store: ProfileStore, options: LlamaCppOptions
) -> Opened | None:
    """``open_by_llama_cpp`` where that is expected to write faster than our own forward, with its
    costs ``own``; None where it is not, or cannot be. The answer is kept in ``own_store``."""
    try:
        place = find_library()
        size = path.stat().st_size
        if place is None or size < COMPARED_BYTES:
            return None
        key = f"llama.cpp is faster/{options}/{place.path}/{place.path.stat().st_mtime_ns}"
        kept = own_store.get(key)
        # Both hold the model for a while.
        if kept is False or (kept is None and free_bytes() < 2 * size):
            return None
        opened = open_by_llama_cpp(path, options)
    except (AccelError, OSError):
        return None
    model, settings, costs, _ = opened
    is_faster = bool(kept) or typical_rate(costs) > typical_rate(own)
    if kept is None and can_be_kept(settings.threads):
        own_store.put(key, is_faster)
    if is_faster:
        return opened
    model.close()
    return None


def _costs(model: LlamaCppModel, settings: RunSettings, store: ProfileStore) -> ForwardCosts:
    key = f"rows/{settings.threads}"
    try:
        return ForwardCosts.from_json(store.get(key))
    except (KeyError, TypeError, ValueError):
        costs = row_costs(model)
    if can_be_kept(settings.threads):
        store.put(key, costs.to_json())
    return costs


def _notice(model: LlamaCppModel) -> str:
    assert model.fixed_widths is not None
    kind = model.capability.kind
    if kind == BatchKind.PLAIN:
        return "llama.cpp computes it without drafts: what it computes cannot be taken back"
    lines = "" if kind == BatchKind.TREE else "llama.cpp computes it with drafts in one line alone"
    kinds = zip(("completions", "edits"), model.fixed_widths, strict=True)
    if undrafted := [name for name, width in kinds if width == 1]:
        return (
            f"llama.cpp computes {' and '.join(undrafted)} without drafts: forwards of several "
            f"rows take too long here (by rows, {model.measured})"
        )
    return lines
