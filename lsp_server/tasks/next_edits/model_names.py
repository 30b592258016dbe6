"""Names of a model: of its file or folder, of the hub's repository, of its metadata."""

from __future__ import annotations

import re
from pathlib import Path

from accel.errors import AccelError
from accel.files.gguf.file import GgufFile, is_gguf

_OF_HUB = re.compile(r"models--[^/\\]+")


def model_names(model: str) -> str:
    """Return all names of a model at a path, or of an id, in one text."""
    path = Path(model)
    names = [path.name, *_OF_HUB.findall(model)]
    try:
        if path.is_file() and is_gguf(path):
            with GgufFile(path) as file:
                keys = "general.name", "general.basename", "general.finetune"
                values = [file.metadata.value(key) for key in keys]
                names += [value for value in values if isinstance(value, str)]
    except (AccelError, OSError):
        pass
    return " ".join(names)
