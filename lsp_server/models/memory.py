"""Whether a model fits into the memory of this machine."""

from __future__ import annotations

import psutil

REPACKED = 1.2
"""Bytes of weights in memory for each in the file."""
KV_TOKENS = 4096
REST_BYTES = 200 << 20


def needed_bytes(nbytes: int, kv_bytes: int) -> int:
    """Memory of a model with ``nbytes`` of weights and ``kv_bytes`` a token in its KV cache."""
    return int(REPACKED * nbytes) + KV_TOKENS * kv_bytes + REST_BYTES


def fits(nbytes: int, kv_bytes: int) -> bool:
    """Whether so much is free now."""
    return needed_bytes(nbytes, kv_bytes) <= psutil.virtual_memory().available
