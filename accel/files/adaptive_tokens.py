"""Adaptive tokens (SDSAT, Liu et al. 2024): inputs that stand for text to come.

A file beside a model's weights holds their ``embeddings``, float32 [tokens, width], and the name of
the weights that they were learnt with: ``adaptive.safetensors`` in a folder,
``NAME.adaptive.safetensors`` beside ``NAME.gguf``. They have ids after the vocabulary's and are
never written.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from accel.errors import BrokenModel, ModelError, UnsupportedModel
from accel.files.file_identity import sample

Floats = NDArray[np.float32]

FILE = "adaptive.safetensors"
EMBEDDINGS, BASE = "embeddings", "base"
_AGAIN = "train it again with `python -m tests.benchmarks train adaptive`"

_log = logging.getLogger(__name__)


def adaptive_file(model: Path) -> Path:
    """Return the path of the adaptive tokens of a folder or a GGUF file."""
    return model / FILE if model.is_dir() else model.with_name(f"{model.stem}.{FILE}")


def read_adaptive_tokens(model: Path, width: int) -> Floats | None:
    """Return the embeddings beside a model's weights, float32 [tokens, width]; None where there are
    none, or none that are of these weights: then the log says so."""
    file = adaptive_file(model)
    if not file.exists():
        return None
    try:
        return read_embeddings(file, base_of(model), width)
    except ModelError as error:
        _log.warning("no adaptive tokens: %s", error)
        return None


def read_embeddings(file: Path, base: str, width: int) -> Floats:
    """Return the embeddings of a file, float32 [tokens, width]. Raises BrokenModel for a damaged
    file, UnsupportedModel for one that belongs to other weights than ``base``."""
    try:
        with safe_open(file, framework="numpy") as stored:
            metadata = stored.metadata() or {}
            embeddings: Floats = stored.get_tensor(EMBEDDINGS)
    except (OSError, SafetensorError, TypeError) as error:
        raise BrokenModel(f"{file} cannot be read ({error})", _AGAIN) from error
    if metadata.get(BASE) != base:
        raise UnsupportedModel(f"{file} belongs to other weights than those beside it", _AGAIN)
    if embeddings.dtype != np.float32 or embeddings.shape[1:] != (width,):
        raise BrokenModel(f"{file} is of another width than its model", _AGAIN)
    if not np.isfinite(embeddings).all():
        raise BrokenModel(f"{file} has values that are no numbers", _AGAIN)
    return embeddings


def base_of(model: Path) -> str:
    """Return names the weights of a folder or a GGUF file by samples of them."""
    own = adaptive_file(model)
    files = sorted(model.glob("*.safetensors")) if model.is_dir() else [model]
    digest = hashlib.sha256()
    for file in files:
        if file != own:
            with file.open("rb") as stream:
                digest.update(sample(stream).encode())
    return digest.hexdigest()
