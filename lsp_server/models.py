"""Where models are. Imports neither accel nor an index."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def model_folder(model: str | Path | None) -> Path:
    """The folder of a model; None or nothing stands for the embedded one. Loads no torch."""
    if model:
        return Path(model).expanduser()
    found = importlib.util.find_spec("accel")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "default_model"
