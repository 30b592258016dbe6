"""The path of a model on this machine; it is downloaded if the caller asks for that."""

from __future__ import annotations

from pathlib import Path

from accel.errors import ModelNotFound
from accel.files import model_path
from accel.files.model_path import is_hub_id

_FILES = ["*.json", "*.safetensors", "*.jinja", "tokenizer.model", "*.txt"]


def find_model_path(model: str | Path | None, *, download: bool = False) -> Path:
    """Folder of a model: a folder, a GGUF file, or a hub id already on this machine. The network is
    used only with ``download``. Raises ModelNotFound, BrokenModel or UnsupportedModel."""
    if download and model is not None and is_hub_id(model) and not Path(model).is_dir():
        from huggingface_hub import snapshot_download

        try:
            return Path(snapshot_download(str(model), allow_patterns=_FILES))
        except Exception as error:
            raise ModelNotFound(
                f"model {model} is not on this machine", "check the name and the network"
            ) from error
    return model_path.find_model_path(model)
