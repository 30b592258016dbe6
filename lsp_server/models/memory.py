"""Whether a model fits into the memory of this machine."""

from __future__ import annotations

from accel.free_memory import free_bytes
from accel.models.room import REPACKED, REST_BYTES

KV_TOKENS = 4096


def needed_bytes(nbytes: int, kv_bytes: int) -> int:
    """Memory of a model with ``nbytes`` of weights and ``kv_bytes`` a token in its KV cache."""
    return int(REPACKED * nbytes) + KV_TOKENS * kv_bytes + REST_BYTES


def fits(nbytes: int, kv_bytes: int) -> bool:
    """Whether so much is free now."""
    return needed_bytes(nbytes, kv_bytes) <= free_bytes()
