"""A folder's Llama as a model of the compiled forward, without torch."""

from __future__ import annotations

from pathlib import Path

from accel.model_options import KvType
from accel.models.base import Model
from accel.models.cpu.llama import CompiledLlama
from accel.models.cpu.safetensors_decoder import read_decoder
from accel.models.fingerprint import fingerprint


def open_folder(folder: Path, dtype: str, kv_type: KvType = "f16") -> Model | None:
    """The model of a folder, None for one that only transformers knows. dtype: ``fp32``, ``bf16``
    or ``int8``."""
    decoder = read_decoder(folder, dtype)
    if decoder is None:
        return None
    model = CompiledLlama(decoder, kv_type)
    model.end_tokens, model.fingerprint = decoder.end_tokens, fingerprint(folder, "cpu")
    return model
