"""Number formats by the names that settings use."""

from __future__ import annotations

import torch

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def name_of(dtype: torch.dtype) -> str:
    """``fp32``, ``bf16``, or torch's own name of another format."""
    names = {value: key for key, value in DTYPES.items()}
    return names.get(dtype, str(dtype).removeprefix("torch."))
