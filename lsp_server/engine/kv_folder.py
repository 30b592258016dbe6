"""The folder of stored KV caches and the names in it. The daemon deletes files there, too."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from operating_system.folders import cache_folder

ENDING = ".kv"


def kv_folder() -> Path:
    """Return the folder of KV caches."""
    return cache_folder() / "kv"


def kv_name(workspace: str, path: str, model: str) -> str:
    """Return the name of what a model computed of a document."""
    return f"{_hash(workspace, path)}-{_hash(model)}"


def forget_everywhere(folder: str, path: str) -> None:
    """Delete all caches of a document, of any model, from the disk."""
    for workspace in {folder, ""}:
        with contextlib.suppress(OSError):
            for file in kv_folder().glob(f"{_hash(workspace, path)}-*{ENDING}"):
                file.unlink(missing_ok=True)


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
