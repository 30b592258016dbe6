"""GGUF files and folders as models of the compiled forward, without torch."""

from __future__ import annotations

from pathlib import Path

from accel.errors import UnsupportedModel
from accel.model_options import KvType
from accel.models.base import Model
from accel.models.cpu import gguf_decoder, safetensors_decoder
from accel.models.cpu.decoder import Decoder
from accel.models.cpu.llama import CompiledLlama
from accel.models.fingerprint import fingerprint


def open_file(path: Path, kv_type: KvType = "f16") -> Model:
    """The model of a GGUF file, as it is stored. Raises BrokenModel or UnsupportedModel."""
    decoder = gguf_decoder.read_decoder(path)
    if decoder is None:
        raise UnsupportedModel(f"{path} cannot be computed as it is stored; give dtype bf16")
    return _model(decoder, path, kv_type)


def open_folder(folder: Path, dtype: str, kv_type: KvType = "f16") -> Model | None:
    """The model of a folder, None for one that only transformers knows. dtype: ``fp32``, ``bf16``
    or ``int8``."""
    decoder = safetensors_decoder.read_decoder(folder, dtype)
    return None if decoder is None else _model(decoder, folder, kv_type)


def _model(decoder: Decoder, path: Path, kv_type: KvType) -> Model:
    model = CompiledLlama(decoder, kv_type)
    model.end_tokens, model.fingerprint = decoder.end_tokens, fingerprint(path, "cpu")
    return model
