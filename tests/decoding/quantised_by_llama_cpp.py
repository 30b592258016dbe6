"""Small random models that llama.cpp itself quantised. Needs llama-cpp-python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from gguf_models import gguf_metadata, gguf_tensors, random_module, vocabulary_metadata
from gguf_writer import Stored, stored, write_gguf

TYPES = {"Q4_0": 2, "Q8_0": 7, "Q4_K_M": 15}
"""The library's numbers of them."""

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
    place = next(i for i, token in enumerate(tokens) if token.startswith("[PAD"))
    tokens[place], about["tokenizer.ggml.token_type"][place] = "ab", 1
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


def quantised(folder: Path, kind: str) -> Path:
    """One with rows of 256 and 512 numbers, which blocks of every type divide."""
    sizes = {"hidden_size": 256, "intermediate_size": 512, "vocab_size": 512}
    whole = saved(folder / "whole.gguf", max_position_embeddings=2048, **sizes)
    file = folder / f"{kind}.gguf"
    command = [sys.executable, "-c", _QUANTISE, str(whole), str(file), str(TYPES[kind])]
    subprocess.run(command, check=True, capture_output=True)
    return file
