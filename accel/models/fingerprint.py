"""Fingerprints of models: the keys of their profiles."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from pathlib import Path

from accel.files.file_identity import identity_of
from accel.files.gguf.file import parts_of
from accel.models import torch_extra
from accel.native.processor import compiled_for
from operating_system.machine import cores

VERSION = 13
"""The version of profiles: they are measured anew where this changes."""


@cache
def version_of(package: str) -> str:
    """Return the version of an installed package, one whose name is a word; empty where it is not
    installed. ``importlib.metadata`` would read all that a package says of itself."""
    for folder in sys.path:
        for folder_of_info in Path(folder).glob(f"{package}-*.*-info"):
            return folder_of_info.stem.removeprefix(f"{package}-")
    return ""


def fingerprint(folder: Path, device: str) -> str:
    """Return names a model's folder or file as it is now, on this kind of machine with these
    libraries."""
    names = [
        str(VERSION),
        *map(version_of, (*torch_extra.PACKAGES, "numba", "llvmlite")),
        # A home folder may be that of several machines.
        *compiled_for(),
        str(cores()),
        device,
    ]
    if folder.is_dir():
        names.append(hashlib.sha256((folder / "config.json").read_bytes()).hexdigest())
    for file in sorted(folder.glob("*.safetensors")) if folder.is_dir() else parts_of(folder):
        names.append(f"{file.name} {identity_of(file)}")
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:32]
