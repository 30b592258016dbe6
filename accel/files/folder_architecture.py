"""What the decoder in a folder is built like, as far as our own forward has such parts.

Read from ``config.json`` as versions 4 and 5 of transformers write it, and from the headers of the
weights. Loads neither torch nor a compiler.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.errors import ModelError
from accel.files.end_tokens import named_ends
from accel.files.folder_hybrid import (
    KINDS,
    RowOrders,
    hybrid_shapes,
    read_hybrid,
    row_orders,
    text_config,
    text_name,
)
from accel.files.gguf.block_types import SMALL_BLOCK
from accel.files.hybrid import Hybrid, turned_frequencies
from accel.files.rope import rope_frequencies
from accel.files.safetensors import WeightsEntry, read_header, shards_of

EMBEDDING, HEAD, NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"
DTYPES = ("BF16", "F16", "F32")
"""Of weights that are read."""

_FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
LEFT_OVER = ".rotary_emb.inv_freq"
"""A buffer that old folders hold and nobody reads."""


@dataclass(frozen=True, slots=True)
class FolderArchitecture:
    """Sizes and constants of a decoder, and where its weights lie."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    """Size of a head."""
    vocabulary: int
    positions: int
    """Tokens of the longest text."""
    eps: float
    frequencies: NDArray[np.float32]
    """Radians a position for each pair of a head's numbers, float32 [head_dim / 2]."""
    end_tokens: frozenset[int]
    tensors: dict[str, tuple[Path, WeightsEntry]]
    """By the names of transformers, the lm head among them also where it is the embedding."""
    hybrid: Hybrid | None = None
    """Layers of gated DeltaNet; norms other than theirs are stored less one."""
    orders: RowOrders = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Of the weights as they are stored."""
        return sum(entry.end - entry.start for _, entry in self.tensors.values())


def folder_architecture(folder: Path) -> FolderArchitecture | None:
    """The decoder of a folder; None where it has something that only transformers knows: that reads
    it, or says what is wrong with it."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        if config["model_type"] in KINDS:
            return _hybrid(folder, text_config(config))
        tensors = _tensors(folder, config)
        return _architecture(folder, config, tensors) if _is_known(folder, config) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, IndexError, ModelError):
        return None


def _tensors(folder: Path, config: dict[str, Any]) -> dict[str, tuple[Path, WeightsEntry]]:
    whole = folder / "model.safetensors"
    files = [whole]
    if not whole.exists():
        index = folder / f"{whole.name}.index.json"
        listed = json.loads(index.read_text("utf-8"))["weight_map"]
        files = [folder / name for name in shards_of(index, listed)]
    found = {
        name: (file, entry)
        for file in files
        for name, entry in read_header(file).items()
        if not name.endswith(LEFT_OVER)
    }
    if config.get("tie_word_embeddings", False):
        # Where both are there and differ, transformers ties them as little.
        found.setdefault(HEAD, found[EMBEDDING])
    return found


def _is_known(folder: Path, config: dict[str, Any]) -> bool:
    """Whether what the configuration names is what our forward has."""
    kind, positions = config["model_type"], config["max_position_embeddings"]
    windows = [config["sliding_window"]] if kind == "mistral" else []
    if config.get("use_sliding_window"):
        windows.append(config.get("sliding_window"))
    return (
        kind in _FAMILIES
        and config["hidden_act"] == "silu"
        and not any(window and window < positions for window in windows)
        and set(config.get("layer_types") or ()) <= {"full_attention"}
        and not (config.get("attention_bias") or config.get("mlp_bias"))
        and "quantization_config" not in config
    )


def _architecture(
    folder: Path, config: dict[str, Any], tensors: dict[str, tuple[Path, WeightsEntry]]
) -> FolderArchitecture | None:
    """None where weights are missing, left over, of other sizes or in numbers that are not read."""
    hidden_size, heads = config["hidden_size"], config["num_attention_heads"]
    norms_heads = config["model_type"] == "qwen3"
    head_dim = config.get("head_dim") or hidden_size // heads
    if norms_heads:
        (head_dim,) = tensors["model.layers.0.self_attn.q_norm.weight"][1].shape
    found = FolderArchitecture(
        layers=config["num_hidden_layers"],
        heads=heads,
        kv_heads=tensors["model.layers.0.self_attn.k_proj.weight"][1].shape[0] // head_dim,
        head_dim=head_dim,
        vocabulary=config["vocab_size"],
        positions=config["max_position_embeddings"],
        eps=config["rms_norm_eps"],
        frequencies=_frequencies(config, head_dim),
        end_tokens=_end_tokens(folder, config),
        tensors=tensors,
    )
    shapes = dict(
        weight_shapes(
            found,
            hidden_size,
            config["intermediate_size"],
            is_biased=config["model_type"] == "qwen2",
            norms_heads=norms_heads,
        )
    )
    is_whole = {name: entry.shape for name, (_, entry) in tensors.items()} == shapes
    inputs = head_dim, hidden_size, config["intermediate_size"], heads * head_dim
    return (
        found
        if is_whole
        and found.kv_heads
        and not heads % found.kv_heads
        and not any(size % SMALL_BLOCK for size in inputs)
        and all(entry.dtype in DTYPES for _, entry in tensors.values())
        else None
    )


def weight_shapes(
    found: FolderArchitecture, hidden_size: int, width: int, *, is_biased: bool, norms_heads: bool
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every weight that such a decoder has. ``width``: of the feed-forward layers."""
    queries, keys = found.heads * found.head_dim, found.kv_heads * found.head_dim
    yield EMBEDDING, (found.vocabulary, hidden_size)
    yield HEAD, (found.vocabulary, hidden_size)
    yield NORM, (hidden_size,)
    for layer in range(found.layers):
        at = f"model.layers.{layer}"
        yield f"{at}.input_layernorm.weight", (hidden_size,)
        yield f"{at}.post_attention_layernorm.weight", (hidden_size,)
        for name, rows in (("q", queries), ("k", keys), ("v", keys)):
            yield f"{at}.self_attn.{name}_proj.weight", (rows, hidden_size)
            if is_biased:
                yield f"{at}.self_attn.{name}_proj.bias", (rows,)
        yield f"{at}.self_attn.o_proj.weight", (hidden_size, queries)
        yield f"{at}.mlp.gate_proj.weight", (width, hidden_size)
        yield f"{at}.mlp.up_proj.weight", (width, hidden_size)
        yield f"{at}.mlp.down_proj.weight", (hidden_size, width)
        if norms_heads:
            yield f"{at}.self_attn.q_norm.weight", (found.head_dim,)
            yield f"{at}.self_attn.k_norm.weight", (found.head_dim,)


def _hybrid(folder: Path, config: dict[str, Any]) -> FolderArchitecture | None:
    """None as for others."""
    stored = _tensors(folder, {})
    tensors = {text_name(name): place for name, place in stored.items() if text_name(name)}
    if config.get("tie_word_embeddings", False):
        tensors.setdefault(HEAD, tensors[EMBEDDING])
    hidden_size, heads, layers = (
        config[key] for key in ("hidden_size", "num_attention_heads", "num_hidden_layers")
    )
    kv_heads = config["num_key_value_heads"]
    head_dim = config.get("head_dim") or hidden_size // heads
    hybrid = read_hybrid(config, head_dim)
    for layer in set(range(layers)) - set(hybrid.layers):
        attention = f"model.layers.{layer}.self_attn"
        tensors[f"{attention}.output_gate.weight"] = tensors[f"{attention}.q_proj.weight"]
    rope = config.get("rope_parameters") or {}
    theta = rope.get("rope_theta", config.get("rope_theta", 10_000.0))
    found = FolderArchitecture(
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocabulary=config["vocab_size"],
        positions=config["max_position_embeddings"],
        eps=config["rms_norm_eps"],
        frequencies=turned_frequencies(rope_frequencies(theta, hybrid.rotary_dim), head_dim),
        end_tokens=_end_tokens(folder, config),
        tensors=tensors,
        hybrid=hybrid,
        orders=row_orders(hybrid, layers, heads, kv_heads, head_dim),
    )
    sizes = hidden_size, config["intermediate_size"]
    shapes = dict(hybrid_shapes(hybrid, layers, heads, kv_heads, head_dim, sizes))
    shapes |= dict.fromkeys((EMBEDDING, HEAD), (found.vocabulary, hidden_size))
    shapes[NORM] = (hidden_size,)
    is_whole = {name: entry.shape for name, (_, entry) in tensors.items()} == shapes
    inputs = *sizes, head_dim, hybrid.key_dim, hybrid.value_dim, hybrid.rotary_dim
    is_known = (
        is_whole
        and config["hidden_act"] == "silu"
        and not config.get("attention_bias")
        and "quantization_config" not in config
        and not heads % kv_heads
        and not any(size % SMALL_BLOCK for size in inputs)
        and all(entry.dtype in DTYPES for _, entry in tensors.values())
    )
    return found if is_known else None


def _frequencies(config: dict[str, Any], head_dim: int) -> NDArray[np.float32]:
    """Plain ones, or divided as Llama 3 does or all alike (Chen et al. 2023). Raises ValueError for
    others."""
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = scaling.get("rope_theta", config.get("rope_theta", 10_000.0))
    if "partial_rotary_factor" in scaling or "partial_rotary_factor" in config:
        raise ValueError("a part of each head is turned")
    plain = rope_frequencies(theta, head_dim)
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return plain
    if kind == "linear":
        return plain / np.float32(scaling["factor"])
    if kind != "llama3":
        raise ValueError(f"positions are scaled by {kind}")
    return _by_wavelength(plain, scaling)


def _by_wavelength(plain: NDArray[np.float32], scaling: dict[str, Any]) -> NDArray[np.float32]:
    """Llama 3.1's frequencies: those that turn rarely in the original context are divided by
    ``factor``, those that turn often stay, with a ramp in between. (Source:
    ``_compute_llama3_parameters`` in transformers.)"""
    factor, original = scaling["factor"], scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = original * plain.astype(np.float64) / (2 * math.pi)
    share = ((turns - low) / (high - low)).clip(0, 1)
    found: NDArray[np.float32] = (plain * share + plain / factor * (1 - share)).astype(np.float32)
    return found


def _end_tokens(folder: Path, config: dict[str, Any]) -> frozenset[int]:
    """Ids that end a text, from the generation config and the config."""
    file = folder / "generation_config.json"
    generation = json.loads(file.read_text("utf-8")) if file.exists() else {}
    ids = [one.get("eos_token_id") for one in (generation, config)]
    return named_ends(ids, config["vocab_size"], folder)
