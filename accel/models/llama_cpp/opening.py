"""Open a GGUF file by llama.cpp: measure it, and choose how many rows its forwards have."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from accel.models.autotune import RunSettings, profile
from accel.models.fingerprint import fingerprint
from accel.models.llama_cpp.model import LlamaCppModel
from accel.native.cpu_features import cores
from accel.planning.cost_model import ForwardCosts
from accel.planning.fixed_width import fixed_width
from accel.planning.profile_store import ProfileStore

FORM = "llama.cpp"


def open_by_llama_cpp(
    path: Path, *, threads: int | None, device: str
) -> tuple[LlamaCppModel, RunSettings, ForwardCosts, ProfileStore]:
    """The model, what it runs with, what forwards of its width cost, and what is kept about it.

    Raises UnsupportedModel or OutOfMemory.
    """
    settings = RunSettings("gguf", threads or cores())
    model = LlamaCppModel(path, settings.threads, layers=0 if device == "cpu" else -1)
    model.fingerprint = fingerprint(path, f"{FORM} {model.system}")
    store = ProfileStore(model.fingerprint)
    costs = profile(model, settings, store)
    width = fixed_width(costs)
    model.computes_rows_of(width)
    place = costs.rows.index(width)
    seconds = np.ascontiguousarray(costs.seconds[:, [place]])
    return model, settings, ForwardCosts(costs.contexts, [width], seconds), store
