"""The device of a model, as far as that is known without torch."""

from __future__ import annotations

import ctypes

from accel.models import torch_extra
from operating_system.system import is_macos, is_macos_on_arm, is_windows


def is_on_cpu(device: str, *, is_gguf: bool = False) -> bool:
    """Return whether ``device`` means the CPU: ``auto`` does for a GGUF file, and for a folder
    where torch or a device for it is missing."""
    if device != "auto":
        return device == "cpu"
    return is_gguf or not _may_have_accelerator()


def _may_have_accelerator() -> bool:
    """Return whether this machine may have a device that torch computes on."""
    if not torch_extra.is_installed():
        return False
    if is_macos():
        return is_macos_on_arm()
    try:
        ctypes.CDLL("nvcuda.dll" if is_windows() else "libcuda.so.1")
    except OSError:
        return False
    return True
