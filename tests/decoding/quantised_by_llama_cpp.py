"""Small random models that llama.cpp itself quantised. Needs llama-cpp-python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from gguf_models import gguf_metadata, gguf_tensors, random_module, vocabulary_metadata
from gguf_writer import Stored, stored, write_gguf

from accel.decoding.engine import Engine
from accel.files.model_options import ModelOptions
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.llama_cpp.model import LlamaCppModel
from accel.models.model_file import model_file
from accel.planning.planner import AdaptivePlanner

TYPES = {"Q4_0": 2, "Q8_0": 7, "Q4_K_M": 15}
"""The library's numbers of them."""

WIDTH = 8
"""Rows of all forwards of ``opened``."""

_QUANTISE = """
import ctypes, sys
import llama_cpp
settings = llama_cpp.llama_model_quantize_default_params()
settings.ftype, settings.nthread = int(sys.argv[3]), 1
source, target = (path.encode() for path in sys.argv[1:3])
sys.exit(llama_cpp.llama_model_quantize(source, target, ctypes.byref(settings)))
"""


def contents(kind: str = "qwen2", **changes: int) -> tuple[dict[str, Any], dict[str, Stored]]:
    """Metadata and tensors, in F16, of a small model that the library takes: it wants at least one
    merge."""
    module = random_module(kind, **changes)
    about = gguf_metadata(module) | vocabulary_metadata(module.config.vocab_size)
    tokens = about["tokenizer.ggml.tokens"]
    position = next(i for i, token in enumerate(tokens) if token.startswith("[PAD"))
    tokens[position], about["tokenizer.ggml.token_type"][position] = "ab", 1
    about["tokenizer.ggml.merges"] = ["a b"]
    return about, gguf_tensors(module, "F16")


def saved(path: Path, kind: str = "qwen2", **changes: int) -> Path:
    """``contents`` as a file."""
    return write_gguf(path, *contents(kind, **changes))


def recurrent(path: Path, seed: int = 0) -> Path:
    """A small Mamba, whose state runs over the text, with random weights."""
    draw, wide, inner, states, tokens = np.random.default_rng(seed), 64, 128, 16, 320
    shapes: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (wide,),
        "ssm_in.weight": (2 * inner, wide),
        "ssm_conv1d.weight": (inner, 4),
        "ssm_conv1d.bias": (inner,),
        "ssm_x.weight": (4 + 2 * states, inner),
        "ssm_dt.weight": (inner, 4),
        "ssm_dt.bias": (inner,),
        "ssm_a": (inner, states),
        "ssm_d": (inner,),
        "ssm_out.weight": (wide, inner),
    }
    every = {f"blk.{layer}.{name}": shape for layer in range(2) for name, shape in shapes.items()}
    every |= {"token_embd.weight": (tokens, wide), "output_norm.weight": (wide,)}
    tensors = {}
    for name, shape in every.items():
        values = draw.normal(0.0, 0.3, shape).astype(np.float32)
        tensors[name] = stored(-np.exp(values) if name.endswith("ssm_a") else values, "F32")
    about = contents("qwen2", vocab_size=tokens)[0]
    kept = {key: value for key, value in about.items() if key.startswith("tokenizer.")}
    sizes = {"context_length": 512, "embedding_length": wide, "block_count": 2}
    sizes |= {"feed_forward_length": 0, "attention.head_count": 0, "ssm.conv_kernel": 4}
    sizes |= {"ssm.inner_size": inner, "ssm.state_size": states, "ssm.time_step_rank": 4}
    keys: dict[str, Any] = {f"mamba.{key}": value for key, value in sizes.items()}
    keys |= {"general.architecture": "mamba", "mamba.attention.layer_norm_rms_epsilon": 1e-5}
    return write_gguf(path, keys | kept, tensors)


def hybrid(path: Path, seed: int = 0, kind: str = "F32") -> Path:
    """A small LFM2 with random weights: a short convolution, whose state runs over the text, a
    layer of attention, and another of the first. ``kind``: of its matrices."""
    draw, wide, inner, tokens = np.random.default_rng(seed), 64, 128, 320
    shapes: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (wide,),
        "ffn_norm.weight": (wide,),
        "ffn_gate.weight": (inner, wide),
        "ffn_up.weight": (inner, wide),
        "ffn_down.weight": (wide, inner),
    }
    convolution: dict[str, tuple[int, ...]] = {
        "shortconv.conv.weight": (wide, 3),
        "shortconv.in_proj.weight": (3 * wide, wide),
        "shortconv.out_proj.weight": (wide, wide),
    }
    attention: dict[str, tuple[int, ...]] = {
        "attn_q.weight": (wide, wide),
        "attn_k.weight": (wide // 2, wide),
        "attn_v.weight": (wide // 2, wide),
        "attn_output.weight": (wide, wide),
        "attn_q_norm.weight": (16,),
        "attn_k_norm.weight": (16,),
    }
    layers = [convolution, attention, convolution]
    every = {
        f"blk.{number}.{name}": shape
        for number, layer in enumerate(layers)
        for name, shape in (shapes | layer).items()
    }
    every |= {"token_embd.weight": (tokens, wide), "token_embd_norm.weight": (wide,)}
    tensors = {}
    for name, shape in every.items():
        values = draw.normal(0.0, 0.3, shape).astype(np.float32)
        is_matrix = len(shape) == 2 and shape[1] >= 32
        values = 1 + values if name.endswith("norm.weight") else values
        tensors[name] = stored(values, kind if is_matrix else "F32")
    about = contents("qwen2", vocab_size=tokens)[0]
    kept = {key: value for key, value in about.items() if key.startswith("tokenizer.")}
    sizes: dict[str, Any] = {"context_length": 2048, "embedding_length": wide, "block_count": 3}
    sizes |= {"feed_forward_length": inner, "attention.head_count": 4, "vocab_size": tokens}
    sizes |= {"attention.head_count_kv": [0, 2, 0], "shortconv.l_cache": 3}
    sizes |= {"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1e6}
    keys: dict[str, Any] = {f"lfm2.{key}": value for key, value in sizes.items()}
    return write_gguf(path, keys | kept | {"general.architecture": "lfm2"}, tensors)


def quantised(folder: Path, kind: str) -> Path:
    """One with rows of 256 and 512 numbers, which blocks of every type divide."""
    sizes = {"hidden_size": 256, "intermediate_size": 512, "vocab_size": 512}
    whole = saved(folder / "whole.gguf", max_position_embeddings=2048, **sizes)
    file = folder / f"{kind}.gguf"
    command = [sys.executable, "-c", _QUANTISE, str(whole), str(file), str(TYPES[kind])]
    subprocess.run(command, check=True, capture_output=True)
    return file


def opened(file: Path, threads: int = 1, *, model: LlamaCppModel | None = None) -> Engine:
    """An engine of llama.cpp, unmeasured. ``model``: of the file, where it is open already."""
    planner = AdaptivePlanner(
        ForwardCosts([256], [WIDTH], np.array([[1e-3]])), WIDTH, widths=(WIDTH,)
    )
    model = model or LlamaCppModel(file, ModelOptions(threads=threads))
    return Engine(model, model_file(file).tokenizer, planner, name=file.name, threads=threads)
