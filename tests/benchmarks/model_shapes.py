"""Public model shapes: what their forwards cost, without their weights."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any, Literal

from accel.errors import InvalidRequest
from accel.files.decoder_tensors import HEAD, Architecture, Family, decoder_tensors
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.cpu.llama import CompiledLlama
from accel.models.cpu.safetensors_decoder import read_decoder
from accel.models.model_file import FolderModel
from operating_system.machine import cores
from tests.benchmarks.forwards.timing import timed_costs

_QWEN = {
    "max_position_embeddings": 32768,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
}
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "0.5B": (
        "qwen2",
        {
            "hidden_size": 896,
            "num_hidden_layers": 24,
            "num_attention_heads": 14,
            "num_key_value_heads": 2,
            "intermediate_size": 4864,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
            **_QWEN,
        },
    ),
    "1.3B": (
        "llama",
        {
            "hidden_size": 2048,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "intermediate_size": 5504,
            "vocab_size": 32256,
            "tie_word_embeddings": False,
            "max_position_embeddings": 16384,
            "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e5},
        },
    ),
    "7B": (
        "qwen2",
        {
            "hidden_size": 3584,
            "num_hidden_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "intermediate_size": 18944,
            "vocab_size": 152064,
            "tie_word_embeddings": False,
            **_QWEN,
        },
    ),
}
"""Qwen2.5-Coder-0.5B, DeepSeek-Coder-1.3B and Qwen2.5-Coder-7B, from their published configs."""

ROWS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 65)
CONTEXTS = (512, 2048)
FORWARDS = 16
"""Times of the least forward for each number of rows and context: what measuring may take."""
MOST_SECONDS = 150.0

OwnDType = Literal["fp32", "int8"]


def model_of_shape(shape: str, dtype: OwnDType) -> CompiledLlama:
    """A model of the shape on the CPU, as our own forward computes it, whose weights are zeros: a
    file of them takes no room. Raises InvalidRequest for an unknown shape."""
    if shape not in SHAPES:
        raise InvalidRequest(f"shape {shape!r} is unknown; known are {', '.join(SHAPES)}")
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), *SHAPES[shape])
        about = FolderModel(Path(folder))
        assert about.has_compiled_forward, "the shapes are all built like Llama"
        return CompiledLlama(read_decoder(about, dtype))


def _write(folder: Path, kind: str, fields: dict[str, Any]) -> None:
    """A folder of such a model."""
    config = {"model_type": kind, "hidden_act": "silu", "rms_norm_eps": 1e-6, **fields}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    heads = config["num_attention_heads"]
    found = Architecture(
        family=Family(is_interleaved=False, is_biased=kind == "qwen2"),
        layers=config["num_hidden_layers"],
        hidden_size=config["hidden_size"],
        intermediate_size=config["intermediate_size"],
        heads=heads,
        kv_heads=config["num_key_value_heads"],
        head_dim=config["hidden_size"] // heads,
        vocabulary=config["vocab_size"],
        positions=config["max_position_embeddings"],
        eps=config["rms_norm_eps"],
        attention_scale=1.0,
    )
    shapes = {part.name: part.folder_shape for part in decoder_tensors(found)}
    if config["tie_word_embeddings"]:
        del shapes[HEAD]
    header, end = {}, 0
    for name, weights in shapes.items():
        start, end = end, end + 2 * math.prod(weights)
        header[name] = {"dtype": "BF16", "shape": weights, "data_offsets": (start, end)}
    written = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(written).to_bytes(8, "little") + written)
        file.truncate(file.tell() + end)


def costs_of_shape(shape: str, dtype: OwnDType, threads: int | None) -> ForwardCosts:
    """Costs of the shape's forwards on this machine. Raises InvalidRequest for an unknown shape."""
    model = model_of_shape(shape, dtype)
    one = timed_costs(model, 0.0, (1,), CONTEXTS[:1]).seconds.min()
    budget_s = min(float(one) * len(ROWS) * len(CONTEXTS) * FORWARDS, MOST_SECONDS)
    model.threads = threads or cores()
    return timed_costs(model, budget_s, ROWS, CONTEXTS)
