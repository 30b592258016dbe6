"""GGUF files and folders as models of the compiled forward, without torch."""

from __future__ import annotations

from accel.files.adaptive_tokens import read_adaptive_tokens
from accel.files.memory_fit import check_fits
from accel.files.model_options import KvType, ModelOptions
from accel.models.backend import Backend
from accel.models.costs.first_costs import learn_costs, numbers_of_threads
from accel.models.costs.profile_store import ProfileStore
from accel.models.cpu import gguf_decoder
from accel.models.cpu.barrier import MOST_THREADS
from accel.models.cpu.decoder import Decoder, with_adaptive_tokens
from accel.models.cpu.llama import CompiledLlama
from accel.models.device import is_on_cpu
from accel.models.fingerprint import fingerprint
from accel.models.model_file import FolderModel, GgufModel, ModelFile
from operating_system.machine import cores, most_cores

DTYPES = {"auto": "int8", "int8": "int8", "fp32": "fp32"}
"""Format of the computation by the format asked for. int8 of a GGUF file: as the weights are
stored."""


def decoder_of(model: ModelFile, dtype: str) -> Decoder:
    """Return the decoder of a model that has a compiled forward, with the adaptive tokens beside
    it. Raises BrokenModel or UnsupportedModel."""
    if isinstance(model, GgufModel):
        decoder = gguf_decoder.read_decoder(model, dtype)
    else:
        from accel.models.cpu import safetensors_decoder

        assert isinstance(model, FolderModel)
        decoder = safetensors_decoder.read_decoder(model, dtype)
    embeddings = read_adaptive_tokens(model.path, len(decoder.weights.norm))
    return decoder if embeddings is None else with_adaptive_tokens(decoder, embeddings)


def compiled_model(decoder: Decoder, kv_type: KvType = "f16") -> CompiledLlama:
    """Return a decoder as a model."""
    if decoder.delta is None:
        return CompiledLlama(decoder, kv_type)
    from accel.models.cpu.delta_net.model import CompiledHybrid

    return CompiledHybrid(decoder, kv_type)


def open_own(model_file: ModelFile, options: ModelOptions) -> Backend | None:
    """Return a model on the CPU; None if the options ask for another device or for a format that
    our forward does not compute. Raises BrokenModel, UnsupportedModel or OutOfMemory."""
    dtype, is_gguf = DTYPES.get(options.dtype), isinstance(model_file, GgufModel)
    if dtype is None or not is_on_cpu(options.device, is_gguf=is_gguf):
        return None
    if not model_file.has_compiled_forward:
        return None
    check_fits(model_file.path, model_file.size(dtype, options.kv_type))
    decoder = decoder_of(model_file, dtype)
    model = compiled_model(decoder, options.kv_type)
    model.end_tokens, model.fingerprint = decoder.end_tokens, fingerprint(model_file.path, "cpu")
    store = ProfileStore(model.fingerprint)
    threads = numbers_of_threads(min(options.threads or most_cores(), MOST_THREADS))
    costs = learn_costs(model, store, f"{dtype}/{options.kv_type}/{threads[-1]}", threads)
    model.threads = min(threads[-1], cores())
    return Backend(
        model=model,
        tokenizer=model_file.tokenizer,
        costs=costs,
        threads=model.threads,
        execution_path="compiled",
    )
