"""Common parts of all forwards by torch: no gradients, one error for a full device, and number
formats by the names that settings use."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def by_torch(compute: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """``compute`` without gradients. It raises MemoryError where the device is full."""

    @wraps(compute)
    def computed(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            with torch.inference_mode():
                return compute(*args, **kwargs)
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise MemoryError(str(error)) from error
            raise

    return computed


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of torch means that the device is full."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and (
        "out of memory" in text or "can't allocate memory" in text or "not enough memory" in text
    )


def name_of(dtype: torch.dtype) -> str:
    """``fp32``, ``bf16``, or torch's own name of another format."""
    names = {value: key for key, value in DTYPES.items()}
    return names.get(dtype, str(dtype).removeprefix("torch."))
