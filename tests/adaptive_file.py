"""Writes the adaptive tokens of a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from accel.files.adaptive_tokens import BASE, EMBEDDINGS, Floats, adaptive_file, base_of


def save_adaptive_tokens(model: Path, embeddings: Floats) -> Path:
    """Write ``embeddings``, float32 [tokens, width], beside the weights of a model."""
    file = adaptive_file(model)
    save_file({EMBEDDINGS: np.ascontiguousarray(embeddings)}, file, {BASE: base_of(model)})
    return file
