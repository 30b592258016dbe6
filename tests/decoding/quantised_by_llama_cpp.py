"""Small random models that llama.cpp itself quantised. Needs llama-cpp-python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from gguf_models import gguf_metadata, gguf_tensors, random_module, vocabulary_metadata
from gguf_writer import Stored, write_gguf

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


def quantised(folder: Path, kind: str) -> Path:
    """One with rows of 256 and 512 numbers, which blocks of every type divide."""
    sizes = {"hidden_size": 256, "intermediate_size": 512, "vocab_size": 512}
    whole = saved(folder / "whole.gguf", max_position_embeddings=2048, **sizes)
    file = folder / f"{kind}.gguf"
    command = [sys.executable, "-c", _QUANTISE, str(whole), str(file), str(TYPES[kind])]
    subprocess.run(command, check=True, capture_output=True)
    return file
