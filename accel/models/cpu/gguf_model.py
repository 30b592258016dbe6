"""A GGUF file as a model whose weights are computed as they are stored, without torch."""

from __future__ import annotations

from pathlib import Path

from accel.errors import UnsupportedModel
from accel.model_options import KvType
from accel.models.base import Model
from accel.models.cpu.gguf_decoder import read_decoder
from accel.models.cpu.llama import CompiledLlama
from accel.models.fingerprint import fingerprint


def open_file(path: Path, kv_type: KvType = "f16") -> Model:
    """The model of a file. Raises BrokenModel or UnsupportedModel."""
    decoder = read_decoder(path)
    if decoder is None:
        raise UnsupportedModel(f"{path} cannot be computed as it is stored; give dtype bf16")
    model = CompiledLlama(decoder, kv_type)
    model.end_tokens, model.fingerprint = decoder.end_tokens, fingerprint(path, "cpu")
    return model
