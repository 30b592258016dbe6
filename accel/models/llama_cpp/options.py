"""What a user may decide of how llama.cpp computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from accel.models.base import KvType

FlashAttention = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class LlamaCppOptions:
    """``gpu_layers``: so many of a model's layers go to a GPU where the library has one, None for
    as many as have room there. ``flash_attention`` auto is left to the library. ``kv_type``: of
    keys and values, int8 in blocks with a scale each."""

    threads: int
    gpu_layers: int | None = None
    flash_attention: FlashAttention = "auto"
    kv_type: KvType = "f16"
