"""Memory that a model needs, compared with that of this machine before it is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from accel.errors import OutOfMemory
from operating_system.machine import free_bytes

REPACKED = 1.2
"""Bytes in memory for each of a matrix as it is computed."""
REST_BYTES = 200 << 20
"""The process without the model."""
FEWEST_TOKENS = 256
"""Tokens that the KV cache has room for at least."""

SCALE_BYTES = 4
"""Of the scale of a head's key or value in eight bits."""

BYTES_OF = {"fp32": 4.0, "bf16": 2.0, "int8": 34 / 32}
"""Of a weight, with its share of a scale."""
_SMALLER = {"Q8_0": 34 / 32, "Q6_K": 210 / 256, "Q5_0": 22 / 32, "Q4_0": 18 / 32}
"""Bytes of a weight in types of GGUF files, the largest first."""


@dataclass(frozen=True, slots=True)
class Size:
    """Of a model: how many weights it has, their bytes as they are computed, and the bytes of a
    token's keys and values."""

    weights: int
    nbytes: float
    token_bytes: int

    @property
    def needed(self) -> int:
        """Bytes of memory."""
        return self._with(self.nbytes)

    def _with(self, nbytes: float) -> int:
        return int(REPACKED * nbytes) + FEWEST_TOKENS * self.token_bytes + REST_BYTES

    def what_fits(self, free: int) -> str:
        """Return the size of a model that fits into ``free`` bytes, in words."""
        smaller = self.smaller(free)
        if smaller:
            megabytes = _SMALLER[smaller] * self.weights / 1e6
            return f"a GGUF file of it in {smaller}, some {megabytes:,.0f} MB, would fit"
        most = int(max(free - REST_BYTES, 0) / REPACKED / _SMALLER["Q4_0"] / 1e6)
        if not most:
            return "no model would fit"
        return f"a model of {most:,.0f} million weights in Q4_0 would fit"

    def smaller(self, free: int) -> str:
        """Return the name of the largest type that fits, empty where none does."""
        for name, each in _SMALLER.items():
            if each * self.weights < self.nbytes and self._with(each * self.weights) <= free:
                return name
        return ""


def check_fits(path: Path, size: Size, *, free: int | None = None) -> None:
    """Raise OutOfMemory, with what would fit, for a model of this size that does not. ``free``:
    bytes; what this machine has where None."""
    free = free_bytes() if free is None else free
    if size.needed <= free:
        return
    raise OutOfMemory(
        f"{path} needs {size.needed / 1e6:,.0f} MB of memory and {free / 1e6:,.0f} MB are free; "
        f"{size.what_fits(free)}, or close other programs"
    )


def fits_in_memory(nbytes: float, token_bytes: int, free: int | None = None) -> bool:
    """Return whether weights of ``nbytes`` and a KV cache with ``token_bytes`` a token have room in
    ``free`` bytes; in the free memory of this machine where None."""
    return Size(0, nbytes, token_bytes).needed <= (free_bytes() if free is None else free)


def token_bytes(layers: int, kv_heads: int, head_dim: int, dtype: str, kv_type: str) -> int:
    """Return bytes of a token's keys and values in a model of these sizes, computed in
    ``dtype``."""
    head_bytes = (
        head_dim + SCALE_BYTES if kv_type == "int8" else head_dim * (4 if dtype == "fp32" else 2)
    )
    return 2 * layers * kv_heads * head_bytes
